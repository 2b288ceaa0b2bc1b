import Glibc
import TestSupport
import Tidemark

/// A hub and three replicas, each a process of its own, that are killed again and again while they
/// synchronise through a proxy which cuts, delays and damages; and then have to be equal.
///
///     Torture SECONDS [--seed N] [--bug NAME]     the run itself, see `TortureRun`
///     Torture hub|storm|rest ...                  a child of it, see `ChildOrder`
///
/// Ends with the number of rounds, operations, kills and differences; the status is 1 if there was
/// a difference.
@main
enum TortureProgram {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let order = ChildOrder(arguments) {
            exit(await perform(order))
        }
        guard let options = TortureOptions(arguments) else {
            say(TortureOptions.usage)
            exit(2)
        }
        exit(run(options))
    }

    private static func perform(_ order: ChildOrder) async -> Int32 {
        Leash.hold()
        do {
            switch order.role {
            case .hub: try await TortureHub.serve(order)
            case .storm: try await TortureReplica(order).storm()
            case .rest: try await TortureReplica(order).rest()
            }
            return 0
        } catch {
            tell(.fault("\(error)"))
            return 1
        }
    }

    private static func run(_ options: TortureOptions) -> Int32 {
        let interruption = Interruption(stuckSeconds: UInt32(options.seconds) + 1_800)
        do {
            let directory = try TemporaryDirectory()
            let run = try TortureRun(options, in: directory, interruption)
            guard run.run() else {
                directory.keep()
                say("torture: the stores are kept in \(directory.path)")
                return 1
            }
            return interruption.signalNumber.map { 128 + $0 } ?? 0
        } catch {
            say("torture: \(error)")
            return 1
        }
    }
}
