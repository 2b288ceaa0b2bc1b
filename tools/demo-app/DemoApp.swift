import Glibc
import Tidemark
import TidemarkSync

#if Networking
import TidemarkHTTP
#endif

/// The part of the demo that needs a program: two services that embed a store each, and meet by
/// bundles or through a hub.
///
/// Arguments: `bundles STORES UNICODE` or `hub STORES UNICODE URL TOKEN-FILE`, where STORES is a
/// directory for the stores and UNICODE that of the Unicode Character Database.
/// Exits with 1 unless both stores end with the same digests.
@main
struct DemoApp {
    static func main() async {
        do {
            let arguments = CommandLine.arguments.dropFirst()
            switch (arguments.first, arguments.count) {
            case ("bundles", 3):
                try await story(arguments[2], arguments[3])
                    .tell(meeting: BundleMeeting(directory: arguments[2]))
            #if Networking
            case ("hub", 5):
                let token = try CharacterFiles.lines(of: arguments[5]).first.map(String.init) ?? ""
                try await tell(through: HTTPTransport(url: arguments[4], token: token), arguments)
            #endif
            default:
                throw DemoError(
                    "usage: demo-app bundles STORES UNICODE | hub STORES UNICODE URL TOKEN-FILE")
            }
        } catch {
            print("The demo failed: \(error)")
            exit(1)
        }
    }

    private static func story(_ stores: String, _ unicode: String) throws -> Story {
        Story(
            north: try Service("north", directory: stores),
            south: try Service("south", directory: stores),
            files: try CharacterFiles(directory: unicode))
    }

    #if Networking
    private static func tell(
        through transport: HTTPTransport, _ arguments: ArraySlice<String>
    ) async throws {
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(
                try await story(arguments[2], arguments[3])
                    .tell(meeting: HubMeeting(transport: transport)))
        } catch {
            outcome = .failure(error)
        }
        await transport.shutdown()
        try outcome.get()
    }
    #endif
}
