// Written by tools/embed-console. Change the file in Static, then run that.

extension ConsoleFiles {
    static let apiJS = ConsoleFile(
        "api.js",
        base64: """
            Ly8gVGFsa3MgdG8gdGhlIGh1Yi4gVGhlIHNlc3Npb24gaXMgaW4gYSBjb29raWUgdGhhdCBubyBzY3JpcHQg\
            c2VlczsgdGhlIHRva2VuIHRoYXQgZWFjaCBjaGFuZ2UgbXVzdAovLyBjYXJyeSBpcyBpbiBtZW1vcnkgYWxv\
            bmUsIGFuZCBpcyBhc2tlZCBmb3IgYW5ldyB3aGVuIHRoZSBwYWdlIGlzIGxvYWRlZC4KCmxldCB0b2tlbiA9\
            ICIiOwoKLyoqIFdoYXQgdGhlIGh1YiByZWZ1c2VzLCBpbiBpdHMgd29yZHMuICovCmV4cG9ydCBjbGFzcyBS\
            ZWZ1c2VkIGV4dGVuZHMgRXJyb3IgewogICAgY29uc3RydWN0b3Ioc3RhdHVzLCBjb2RlLCBtZXNzYWdlKSB7\
            CiAgICAgICAgc3VwZXIobWVzc2FnZSk7CiAgICAgICAgdGhpcy5zdGF0dXMgPSBzdGF0dXM7CiAgICAgICAg\
            dGhpcy5jb2RlID0gY29kZTsKICAgIH0KCiAgICBnZXQgaXNTaWduZWRPdXQoKSB7CiAgICAgICAgcmV0dXJu\
            IHRoaXMuc3RhdHVzID09PSA0MDE7CiAgICB9Cn0KCmFzeW5jIGZ1bmN0aW9uIGFzayhwYXRoLCBvcHRpb25z\
            ID0ge30pIHsKICAgIGxldCByZXNwb25zZTsKICAgIHRyeSB7CiAgICAgICAgcmVzcG9uc2UgPSBhd2FpdCBm\
            ZXRjaChgL2NvbnNvbGUvYXBpLyR7cGF0aH1gLCB7CiAgICAgICAgICAgIGNyZWRlbnRpYWxzOiAic2FtZS1v\
            cmlnaW4iLCByZWRpcmVjdDogImVycm9yIiwgY2FjaGU6ICJuby1zdG9yZSIsIC4uLm9wdGlvbnMsCiAgICAg\
            ICAgfSk7CiAgICB9IGNhdGNoIChlcnJvcikgewogICAgICAgIGlmIChlcnJvci5uYW1lID09PSAiQWJvcnRF\
            cnJvciIpIHRocm93IGVycm9yOwogICAgICAgIHRocm93IG5ldyBSZWZ1c2VkKDAsICJ1bnJlYWNoYWJsZSIs\
            ICJUaGUgaHViIGNhbm5vdCBiZSByZWFjaGVkLiBJcyBpdCBydW5uaW5nPyIpOwogICAgfQogICAgbGV0IGJv\
            ZHkgPSB7fTsKICAgIHRyeSB7CiAgICAgICAgYm9keSA9IGF3YWl0IHJlc3BvbnNlLmpzb24oKTsKICAgIH0g\
            Y2F0Y2ggewogICAgICAgIGlmIChyZXNwb25zZS5vaykgdGhyb3cgbmV3IFJlZnVzZWQocmVzcG9uc2Uuc3Rh\
            dHVzLCAidW5yZWFkYWJsZSIsICJUaGUgaHViJ3MgYW5zd2VyIGNhbm5vdCBiZSByZWFkLiIpOwogICAgfQog\
            ICAgaWYgKHJlc3BvbnNlLm9rKSByZXR1cm4gYm9keTsKICAgIHRocm93IG5ldyBSZWZ1c2VkKAogICAgICAg\
            IHJlc3BvbnNlLnN0YXR1cywgYm9keS5lcnJvcj8uY29kZSA/PyAidW5rbm93biIsCiAgICAgICAgYm9keS5l\
            cnJvcj8ubWVzc2FnZSA/PyBgVGhlIGh1YiBhbnN3ZXJlZCB3aXRoIHN0YXR1cyAke3Jlc3BvbnNlLnN0YXR1\
            c30uYCk7Cn0KCmZ1bmN0aW9uIHF1ZXJ5KHBhcmFtZXRlcnMpIHsKICAgIGNvbnN0IHBhaXJzID0gT2JqZWN0\
            LmVudHJpZXMocGFyYW1ldGVycykKICAgICAgICAuZmlsdGVyKChbLCB2YWx1ZV0pID0+IHZhbHVlICE9PSB1\
            bmRlZmluZWQgJiYgdmFsdWUgIT09IG51bGwgJiYgdmFsdWUgIT09ICIiKQogICAgICAgIC5tYXAoKFtuYW1l\
            LCB2YWx1ZV0pID0+IGAke2VuY29kZVVSSUNvbXBvbmVudChuYW1lKX09JHtlbmNvZGVVUklDb21wb25lbnQo\
            dmFsdWUpfWApOwogICAgcmV0dXJuIHBhaXJzLmxlbmd0aCA/IGA/JHtwYWlycy5qb2luKCImIil9YCA6ICIi\
            Owp9CgpleHBvcnQgZnVuY3Rpb24gZ2V0KG9wZXJhdGlvbiwgcGFyYW1ldGVycyA9IHt9LCBzaWduYWwgPSB1\
            bmRlZmluZWQpIHsKICAgIHJldHVybiBhc2sob3BlcmF0aW9uICsgcXVlcnkocGFyYW1ldGVycyksIHsgc2ln\
            bmFsIH0pOwp9CgpmdW5jdGlvbiBzZW5kKG9wZXJhdGlvbiwgbWV0aG9kLCBib2R5KSB7CiAgICByZXR1cm4g\
            YXNrKG9wZXJhdGlvbiwgewogICAgICAgIG1ldGhvZCwgaGVhZGVyczogeyAiY29udGVudC10eXBlIjogImFw\
            cGxpY2F0aW9uL2pzb24iLCAieC10aWRlbWFyay10b2tlbiI6IHRva2VuIH0sCiAgICAgICAgYm9keTogYm9k\
            eSA9PT0gdW5kZWZpbmVkID8gdW5kZWZpbmVkIDogSlNPTi5zdHJpbmdpZnkoYm9keSksCiAgICB9KTsKfQoK\
            LyoqIENoYW5nZXMgc29tZXRoaW5nOyB0byBiZSBhc2tlZCBmb3Igb25seSB3aGVuIHNvbWVib2R5IGhhcyBj\
            b25maXJtZWQgaXQuICovCmV4cG9ydCBmdW5jdGlvbiBjaGFuZ2Uob3BlcmF0aW9uLCBib2R5KSB7CiAgICBy\
            ZXR1cm4gc2VuZChvcGVyYXRpb24sICJQT1NUIiwgYm9keSk7Cn0KCi8qKiBUaGUgc2Vzc2lvbiBvZiB0aGlz\
            IGJyb3dzZXI7IHRocm93cyBpZiBub2JvZHkgaXMgc2lnbmVkIGluLiAqLwpleHBvcnQgYXN5bmMgZnVuY3Rp\
            b24gcmVzdW1lKCkgewogICAgdG9rZW4gPSAoYXdhaXQgZ2V0KCJzZXNzaW9uIikpLnRva2VuOwp9CgpleHBv\
            cnQgYXN5bmMgZnVuY3Rpb24gc2lnbkluKHNlY3JldCkgewogICAgdG9rZW4gPSAoYXdhaXQgc2VuZCgic2Vz\
            c2lvbiIsICJQT1NUIiwgeyB0b2tlbjogc2VjcmV0IH0pKS50b2tlbjsKfQoKZXhwb3J0IGFzeW5jIGZ1bmN0\
            aW9uIHNpZ25PdXQoKSB7CiAgICBhd2FpdCBzZW5kKCJzZXNzaW9uIiwgIkRFTEVURSIpOwogICAgdG9rZW4g\
            PSAiIjsKfQo=
            """)
}
