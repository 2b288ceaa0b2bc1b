/// Certificates of nobody, each with its key, for tests of TLS. They are good for a hundred years.
enum TestCertificates {
    static let firstCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIBpDCCAUmgAwIBAgIUPGQnnOibnycEyJc9RxZeS1P84B8wCgYIKoZIzj0EAwIw
        GDEWMBQGA1UEAwwNZmlyc3QuZXhhbXBsZTAgFw0yNjExMjMwMTIzNDRaGA8yMTI2
        MTAzMDAxMjM0NFowGDEWMBQGA1UEAwwNZmlyc3QuZXhhbXBsZTBZMBMGByqGSM49
        AgEGCCqGSM49AwEHA0IABASo6y+jNTht39XHReo/1UPKwuZkae+2YgAI138UPHY7
        yqaU4gBZEX7MJbM2m94/WEK74OXvPi1Aj6Tp+roJqAyjbzBtMB0GA1UdDgQWBBTH
        maXDi4JmVtKJ0OoHN95Pj/sjFDAfBgNVHSMEGDAWgBTHmaXDi4JmVtKJ0OoHN95P
        j/sjFDAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAA
        ATAKBggqhkjOPQQDAgNJADBGAiEAkUlpAf1diw2umE4NdZYOUbjsK5Pwcbzd8RWj
        OJpTLSgCIQCKfrDWwH8N4g+bovJ017On/2RRriBmIQ0hJ2PCtRwMmw==
        -----END CERTIFICATE-----

        """
    static let firstKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgqbsPaq3HTcaIxAbl
        dxCvfNOgJjP+4+MiyAJgmL58VeKhRANCAAQEqOsvozU4bd/Vx0XqP9VDysLmZGnv
        tmIACNd/FDx2O8qmlOIAWRF+zCWzNpveP1hCu+Dl7z4tQI+k6fq6CagM
        -----END PRIVATE KEY-----

        """
    static let secondCertificate = """
        -----BEGIN CERTIFICATE-----
        MIIBpDCCAUugAwIBAgIUb7YyOH8x5Mr3mCqc9wvmlk47KZ8wCgYIKoZIzj0EAwIw
        GTEXMBUGA1UEAwwOc2Vjb25kLmV4YW1wbGUwIBcNMjYxMTIzMDEyMzQ0WhgPMjEy
        NjEwMzAwMTIzNDRaMBkxFzAVBgNVBAMMDnNlY29uZC5leGFtcGxlMFkwEwYHKoZI
        zj0CAQYIKoZIzj0DAQcDQgAExCW+OGTirXt/IMe+7PdBK7qS+9SZSfEWFR51sXnQ
        LGQwg8NK/KOj7qKk0u3g8iUzjCfjqwb115tWflpvVmCJnqNvMG0wHQYDVR0OBBYE
        FMjazML3W7Ob5YA170iOd2YGmQ5RMB8GA1UdIwQYMBaAFMjazML3W7Ob5YA170iO
        d2YGmQ5RMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/
        AAABMAoGCCqGSM49BAMCA0cAMEQCICPQ8ANZnJWsa58pYLqNVdEPQ7CFFw7CpMbb
        PeyLRpzKAiBJgRMNAT9zfq5sMTSo8hgKvk2lhm9/sny9s14TI8eAEw==
        -----END CERTIFICATE-----

        """
    static let secondKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgxIDVmmbsazsz/2c9
        2rjHN54LEQico5Bw6m5yolBwP8ShRANCAATEJb44ZOKte38gx77s90ErupL71JlJ
        8RYVHnWxedAsZDCDw0r8o6PuoqTS7eDyJTOMJ+OrBvXXm1Z+Wm9WYIme
        -----END PRIVATE KEY-----

        """
}
