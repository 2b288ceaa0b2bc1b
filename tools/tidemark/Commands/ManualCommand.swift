import ArgumentParser
import TidemarkSync

struct ManualCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual",
        abstract: "Print the manual as a page for man.",
        discussion: "It is made of what --help shows of each command, in the macros of man(7).")

    mutating func run(_ output: OutputStream) async throws {
        for line in try ManualPage().lines() { try output.writeLine(line) }
    }
}

/// The whole command as a page in the macros of man(7).
struct ManualPage {
    private let root: JSONValue
    private let version: String

    init() throws {
        let description = Array(TidemarkCommand._dumpHelp().utf8)
        guard let command = try? JSONValue(parsing: description)["command"] else {
            throw CommandFailure(.defect, "the description of the command is unreadable")
        }
        root = command
        version = TidemarkCommand.configuration.version
    }

    func lines() -> [String] {
        let name = root["commandName"]?.text ?? ""
        var lines = [
            ".TH TIDEMARK 1 \"\" \"tidemark \(version)\" \"User Commands\"", ".SH NAME",
            "\(name) \\- \(Self.escaped(root["abstract"]?.text ?? ""))", ".SH SYNOPSIS",
            ".B \(name)", "\\fICOMMAND\\fR \\fISTORE\\fR [\\fIOPTION\\fR]...", ".SH DESCRIPTION",
        ]
        lines += Self.paragraphs(root["discussion"]?.text ?? "")
        lines += Self.examples(of: "")
        lines.append(".SH COMMANDS")
        for command in Self.commands(in: root, behind: []) { lines += Self.section(command) }
        return lines
    }

    /// A command, and the names that lead to it.
    private struct Command {
        let path: [String]
        let content: JSONValue
    }

    /// All commands in a group, each before those within.
    private static func commands(in group: JSONValue, behind path: [String]) -> [Command] {
        (group["subcommands"]?.elements ?? []).flatMap { content -> [Command] in
            guard let name = content["commandName"]?.text, name != "help" else { return [] }
            let command = Command(path: path + [name], content: content)
            return [command] + commands(in: content, behind: command.path)
        }
    }

    private static func section(_ command: Command) -> [String] {
        let path = command.path.joined(separator: " ")
        let arguments = (command.content["arguments"]?.elements ?? []).filter {
            !["help", "version"].contains($0["preferredName"]?["name"]?.text)
        }
        let synopsis = arguments.map { escaped(Self.synopsis($0)) }.joined(separator: " ")
        var lines = [".SS \(escaped(path))"]
        if let abstract = command.content["abstract"]?.text { lines.append(escapedLine(abstract)) }
        lines += [".PP", ".B tidemark \(escaped(path))"]
        if !synopsis.isEmpty { lines.append(synopsis) }
        lines += paragraphs(command.content["discussion"]?.text ?? "")
        for argument in arguments {
            lines += [".TP", "\\fB\(escaped(spelling(argument)))\\fR"]
            lines.append(escapedLine(argument["abstract"]?.text ?? ""))
        }
        return lines + examples(of: path)
    }

    private static func spelling(_ argument: JSONValue) -> String {
        let value = argument["valueName"]?.text ?? "value"
        guard let name = argument["preferredName"]?["name"]?.text else { return "<\(value)>" }
        let dashes = argument["preferredName"]?["kind"]?.text == "short" ? "-" : "--"
        return argument["kind"]?.text == "option"
            ? "\(dashes)\(name) <\(value)>" : "\(dashes)\(name)"
    }

    private static func synopsis(_ argument: JSONValue) -> String {
        var text = spelling(argument)
        if argument["isRepeating"] == true { text += "..." }
        return argument["isOptional"] == true ? "[\(text)]" : text
    }

    private static func examples(of path: String) -> [String] {
        guard let lines = Examples.lines[path] else { return [] }
        return [".PP", "Examples:", ".PP", ".nf", ".RS"] + lines.map { escapedLine($0) }
            + [".RE", ".fi"]
    }

    /// Paragraphs as they are; what is indented keeps its lines.
    private static func paragraphs(_ text: String) -> [String] {
        var lines: [String] = []
        var isTable = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isIndented = line.hasPrefix(" ")
            if isIndented != isTable {
                lines.append(isIndented ? ".nf" : ".fi")
                isTable = isIndented
            }
            lines.append(line.isEmpty ? ".PP" : escapedLine(String(line)))
        }
        if isTable { lines.append(".fi") }
        return text.isEmpty ? [] : [".PP"] + lines
    }

    /// Text that stands behind something in its line.
    static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
            .replacing("\n", with: " ")
    }

    /// A line of text, none of which passes for a macro.
    static func escapedLine(_ text: String) -> String {
        let line = escaped(text)
        return line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }
}
