import Glibc
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// The part of the demo that needs a program: two services that embed a store each.
///
/// Arguments: the hub's address, the file with its token, a directory for the stores, and the
/// directory of the Unicode Character Database.
/// Exits with 1 unless both stores end with the same digests.
@main
struct DemoApp {
    static func main() async {
        do {
            let arguments = CommandLine.arguments
            guard arguments.count == 5 else {
                throw DemoError("usage: demo-app HUB-URL TOKEN-FILE STORES UNICODE-DIRECTORY")
            }
            let token = try CharacterFiles.lines(of: arguments[2]).first.map(String.init) ?? ""
            let transport = HTTPTransport(url: arguments[1], token: token)
            let files = try CharacterFiles(directory: arguments[4])
            let story = Story(
                north: try Service("north", directory: arguments[3]),
                south: try Service("south", directory: arguments[3]),
                files: files)
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await story.tell(through: transport))
            } catch {
                outcome = .failure(error)
            }
            await transport.shutdown()
            try outcome.get()
        } catch {
            print("The demo failed: \(error)")
            exit(1)
        }
    }
}
