import ArgumentParser
import Tidemark

/// What the command's exit status says. The numbers from 64 on are those of `sysexits.h`.
///
/// Scripts decide by them: they are stable, and every failure maps to exactly one.
enum CommandStatus: Int32, CaseIterable {
    case fine = 0
    case negative = 1
    case damage = 2
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case defect = 70
    case inputOutput = 74
    case busy = 75
    case protocolBroken = 76
    case refused = 77
    case tooNew = 78

    var meaning: String {
        switch self {
        case .fine: "all went well"
        case .negative: "no such dataset or key, or the answer is no"
        case .damage: "the store is damaged; the message names file and offset"
        case .usage: "the command line is wrong, or a name, key or value out of bounds"
        case .badData: "bad data or a damaged bundle to import, or a hub that is a copy"
        case .noInput: "no such store or file"
        case .unavailable: "the hub cannot be reached, or is overloaded"
        case .defect: "a defect of this program"
        case .inputOutput: "the disk is full, or reading or writing failed"
        case .busy: "another process writes the store, or it changed meanwhile; try again"
        case .protocolBroken: "the other side answers something else than the sync protocol"
        case .refused: "the other side refuses the token or the access key"
        case .tooNew: "written in a format that this version does not read"
        }
    }

    /// The status for a failure of the store.
    init(_ code: StoreError.Code) {
        switch code {
        case .invalidArgument, .readOnly: self = .usage
        case .notAStore: self = .noInput
        case .locked, .changesExpired: self = .busy
        case .formatTooNew, .formatTooOld: self = .tooNew
        case .corruption: self = .damage
        case .diskFull, .inputOutput, .writerStopped: self = .inputOutput
        case .datasetNotFound, .versionMismatch, .historyExpired: self = .negative
        default: self = .defect
        }
    }

    /// The table for `--help`.
    static var helpTable: String {
        allCases.map { status in
            let number = String(status.rawValue)
            return String(repeating: " ", count: 4 - number.count) + "\(number)  \(status.meaning)"
        }.joined(separator: "\n")
    }
}

/// An error of the library: has a code that maps to an exit status, and a message with a remedy.
protocol ReportableError: Error, CustomStringConvertible {
    var exitStatus: CommandStatus { get }
}

extension StoreError: ReportableError {
    var exitStatus: CommandStatus { CommandStatus(code) }
}

/// Why a command failed: the exit status, and one line that says what, where and what to do.
struct CommandFailure: Error {
    let status: CommandStatus
    let message: String

    init(_ status: CommandStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Any error that a command may throw, as a failure with its status.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as any ReportableError: self.init(error.exitStatus, error.description)
        default: self.init(.defect, "\(error)")
        }
    }
}
