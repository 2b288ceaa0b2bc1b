// Written by tools/embed-console. Change the file in Static, then run that.

extension ConsoleFiles {
    static let diffJS = ConsoleFile(
        "diff.js",
        base64: """
            Ly8gV2hhdCBkaWZmZXJzIGJldHdlZW4gdHdvIHRleHRzLCBsaW5lIGJ5IGxpbmU6IHRoZSBsb25nZXN0IGNv\
            bW1vbiBzdWJzZXF1ZW5jZSwgYnkgZHluYW1pYwovLyBwcm9ncmFtbWluZyAoV2FnbmVyIGFuZCBGaXNjaGVy\
            LCAxOTc0KSwgZm9yIHRleHRzIHRoYXQgYXJlIHNob3J0IGVub3VnaCBmb3IgaXRzIHNxdWFyZS4KCmNvbnN0\
            IGxpbmVzTWF4ID0gNjAwOwoKLyoqIExpbmVzIGFzIGB7IGtpbmQsIGxpbmUgfWAsIHdoZXJlIHRoZSBraW5k\
            IGlzICJhZGRlZCIsICJnb25lIiBvciBub3RoaW5nOyBudWxsIGlmIHRoZXkgYXJlIG1hbnkuICovCmV4cG9y\
            dCBmdW5jdGlvbiBkaWZmZXJlbmNlcyhiZWZvcmUsIGFmdGVyKSB7CiAgICBjb25zdCBbb2xkLCBub3ddID0g\
            W2JlZm9yZS5zcGxpdCgiXG4iKSwgYWZ0ZXIuc3BsaXQoIlxuIildOwogICAgaWYgKG9sZC5sZW5ndGggPiBs\
            aW5lc01heCB8fCBub3cubGVuZ3RoID4gbGluZXNNYXgpIHJldHVybiBudWxsOwogICAgY29uc3Qgd2lkdGgg\
            PSBub3cubGVuZ3RoICsgMTsKICAgIGNvbnN0IGxlbmd0aHMgPSBuZXcgVWludDE2QXJyYXkoKG9sZC5sZW5n\
            dGggKyAxKSAqIHdpZHRoKTsKICAgIGZvciAobGV0IGkgPSBvbGQubGVuZ3RoIC0gMTsgaSA+PSAwOyBpIC09\
            IDEpIHsKICAgICAgICBmb3IgKGxldCBqID0gbm93Lmxlbmd0aCAtIDE7IGogPj0gMDsgaiAtPSAxKSB7CiAg\
            ICAgICAgICAgIGxlbmd0aHNbaSAqIHdpZHRoICsgal0gPSBvbGRbaV0gPT09IG5vd1tqXSA/IGxlbmd0aHNb\
            KGkgKyAxKSAqIHdpZHRoICsgaiArIDFdICsgMQogICAgICAgICAgICAgICAgOiBNYXRoLm1heChsZW5ndGhz\
            WyhpICsgMSkgKiB3aWR0aCArIGpdLCBsZW5ndGhzW2kgKiB3aWR0aCArIGogKyAxXSk7CiAgICAgICAgfQog\
            ICAgfQogICAgY29uc3QgbGluZXMgPSBbXTsKICAgIGxldCBbaSwgal0gPSBbMCwgMF07CiAgICB3aGlsZSAo\
            aSA8IG9sZC5sZW5ndGggfHwgaiA8IG5vdy5sZW5ndGgpIHsKICAgICAgICBpZiAoaSA8IG9sZC5sZW5ndGgg\
            JiYgaiA8IG5vdy5sZW5ndGggJiYgb2xkW2ldID09PSBub3dbal0pIHsKICAgICAgICAgICAgbGluZXMucHVz\
            aCh7IGtpbmQ6ICIiLCBsaW5lOiBub3dbal0gfSk7CiAgICAgICAgICAgIGkgKz0gMTsKICAgICAgICAgICAg\
            aiArPSAxOwogICAgICAgIH0gZWxzZSBpZiAoaSA8IG9sZC5sZW5ndGggJiYgKGogPT09IG5vdy5sZW5ndGgg\
            fHwgbGVuZ3Roc1soaSArIDEpICogd2lkdGggKyBqXSA+PSBsZW5ndGhzW2kgKiB3aWR0aCArIGogKyAxXSkp\
            IHsKICAgICAgICAgICAgbGluZXMucHVzaCh7IGtpbmQ6ICJnb25lIiwgbGluZTogb2xkW2ldIH0pOwogICAg\
            ICAgICAgICBpICs9IDE7CiAgICAgICAgfSBlbHNlIHsKICAgICAgICAgICAgbGluZXMucHVzaCh7IGtpbmQ6\
            ICJhZGRlZCIsIGxpbmU6IG5vd1tqXSB9KTsKICAgICAgICAgICAgaiArPSAxOwogICAgICAgIH0KICAgIH0K\
            ICAgIHJldHVybiBsaW5lczsKfQo=
            """)
}
