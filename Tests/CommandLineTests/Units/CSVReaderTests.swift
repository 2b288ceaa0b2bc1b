import TestSupport
import Testing

@testable import tidemark

@Suite struct CSVReaderTests {
    /// Each record as `key=value`, each bad line as `line N`.
    private func read(_ content: String, key: String = "id", value: String? = nil) throws
        -> [String]
    {
        let directory = try TemporaryDirectory()
        try Files.write(Array(content.utf8), to: directory["file"])
        var reader = try CSVReader(
            try InputFile(path: directory["file"]), keyField: key, valueField: value)
        var found: [String] = []
        while true {
            do {
                guard let record = try reader.next() else { return found }
                found.append(
                    String(decoding: record.key, as: UTF8.self) + "="
                        + String(decoding: record.value, as: UTF8.self))
            } catch let bad as BadLine {
                found.append("line \(bad.line)")
            }
        }
    }

    @Test func rowsBecomeObjects() throws {
        #expect(
            try read("id,name\n1,apple\n2,pear\n") == [
                #"1={"id":"1","name":"apple"}"#, #"2={"id":"2","name":"pear"}"#,
            ])
    }

    @Test func quotesCommasAndLineEnds() throws {
        let rows = ["id,text", #"1,"a,b""#, #"2,"say ""hi""""#, "3,\"two\r\nlines\"", ""]
        #expect(
            try read(rows.joined(separator: "\r\n")) == [
                #"1={"id":"1","text":"a,b"}"#, #"2={"id":"2","text":"say \"hi\""}"#,
                #"3={"id":"3","text":"two\r\nlines"}"#,
            ])
        #expect(
            try read("\"id\",\"a \"\"b\"\"\"\n1,\"\"\n2,\n\n3,\"\n\"") == [
                #"1={"id":"1","a \"b\"":""}"#, #"2={"id":"2","a \"b\"":""}"#,
                #"3={"id":"3","a \"b\"":"\n"}"#,
            ])
    }

    @Test func theLastLineMayLackItsEnd() throws {
        #expect(try read("id\n1") == [#"1={"id":"1"}"#])
        #expect(try read("\u{FEFF}id\n1\r\n") == [#"1={"id":"1"}"#])
    }

    @Test func oneFieldAsTheValue() throws {
        #expect(try read("id,name\n1,\"a\nb\"\n", value: "name") == ["1=a\nb"])
    }

    @Test func badRowsAreNamedAndTheNextIsRead() throws {
        #expect(
            try read("id,n\n1\n2,b\n3,c,d\n4,\"d\" x\n5,e\"f\n6,f\n") == [
                "line 2", #"2={"id":"2","n":"b"}"#, "line 4", "line 5", "line 6",
                #"6={"id":"6","n":"f"}"#,
            ])
        #expect(try read("id,n\n1,\"a\n2,b\n") == ["line 2"])
    }

    @Test func aBadFirstLineIsRefused() {
        #expect(throws: BadLine.self) { try read("") }
        #expect(throws: BadLine.self) { try read("id,id\n1,2\n") }
        #expect(throws: CommandFailure.self) { try read("a,b\n1,2\n") }
    }

    /// Whatever is written by the rules is read back.
    @Test func readsBackWhatTheRulesWrite() throws {
        var random = SeededGenerator(.drawn())
        let pieces = ["a", ",", "\"", "\n", "\r\n", " ", "é", ""]
        for _ in 0..<200 {
            let fields = (0..<1 + random.below(4)).map { _ in
                (0..<random.below(6)).map { _ in random.element(of: pieces) }.joined()
            }
            let rows = fields.enumerated().map { index, field in
                "\(index),\"\(field.replacing("\"", with: "\"\""))\""
            }
            let end = random.oneIn(2) ? "\r\n" : "\n"
            let content = "id,text\(end)" + rows.joined(separator: end) + end
            #expect(
                try read(content, value: "text")
                    == fields.enumerated().map { "\($0)=\($1)" })
        }
    }
}
