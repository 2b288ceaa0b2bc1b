/// Each command at work, for its help and for the manual.
enum Examples {
    /// A section to be put behind a discussion, a line for each example: for commands that are not
    /// among ``lines``.
    static func section(_ lines: [String]) -> String {
        "\n\nEXAMPLES:\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }

    /// By the command's name, behind that of the group that it is in. At most 78 columns each.
    static let lines: [String: [String]] = [
        "": ["tidemark put notes diary monday 'bought milk'", "tidemark inspect notes"],
        "put": [
            "tidemark put notes diary monday 'bought milk'",
            "tidemark put notes photos cat < cat.jpg",
        ],
        "get": [
            "tidemark get notes diary monday",
            "tidemark get notes photos cat > cat.jpg",
            "tidemark get notes diary monday --at 17",
            "tidemark get notes diary monday --at 2026-11-21T06:30:00Z",
        ],
        "delete": ["tidemark delete notes diary monday"],
        "scan": [
            "tidemark scan notes diary --prefix mon",
            "tidemark scan notes diary --json | jq .key",
            "tidemark scan notes diary --at 17 --json",
            "tidemark scan notes diary --at 2026-11-21T06:30:00Z --deleted",
        ],
        "import": [
            "tidemark import notes diary entries.jsonl --key day",
            "tidemark import cognito --help",
        ],
        "export": ["tidemark export notes diary > diary.jsonl"],
        "datasets": ["tidemark datasets notes"],
        "log": [
            "tidemark log notes --dataset diary --key monday",
            "tidemark log notes --since 2026-11-21 --op delete",
            "tidemark log notes --follow --author ada",
            "tidemark log notes --segment 3 --hex | less",
        ],
        "history": [
            "tidemark history notes diary monday",
            "tidemark history notes diary monday --dot | dot -Tpdf > monday.pdf",
            "tidemark history notes diary monday --svg > monday.svg",
        ],
        "inspect": [
            "tidemark inspect notes",
            "tidemark inspect notes --json | jq 'select(.kind == \"peer\")'",
        ],
        "why": [
            "tidemark why notes monday", "tidemark why notes monday --dataset diary",
            "tidemark why notes 000003.seg",
        ],
        "stats": ["tidemark stats notes", "tidemark stats notes --json"],
        "verify": ["tidemark verify notes", "tidemark verify notes --json > report.jsonl"],
        "compact": ["tidemark compact notes", "tidemark compact notes --history 3"],
        "sync": [
            "tidemark sync notes https://hub.example.org --token-file token",
            "tidemark sync notes https://hub.example.org --token-file token --dry-run",
            "tidemark sync notes https://hub.example.org --token-file token --policy leave",
        ],
        "heal": ["tidemark heal notes https://hub.example.org --token-file token"],
        "serve": ["tidemark serve notes --listen 127.0.0.1:8080 --token-file token"],
        "bundle": [
            "tidemark bundle export notes diary.bundle --dataset diary",
            "tidemark bundle import other diary.bundle",
        ],
        "bundle export": ["tidemark bundle export notes diary.bundle --dataset diary"],
        "bundle import": ["tidemark bundle import other diary.bundle"],
        "bundle show": ["tidemark bundle show diary.bundle"],
        "quarantine": [
            "tidemark quarantine list notes diary",
            "tidemark quarantine release notes diary c0000003:4",
        ],
        "quarantine list": ["tidemark quarantine list notes diary"],
        "quarantine release": ["tidemark quarantine release notes diary c0000003:4"],
        "quarantine discard": ["tidemark quarantine discard notes diary --all"],
        "diff": [
            "tidemark diff phone laptop",
            "tidemark diff notes --dataset diary --since 17",
            "tidemark diff notes --since 2026-11-21T06:30:00Z --json",
            "tidemark diff notes --dataset diary --since peer:5e1f00aa",
            "tidemark diff notes --dataset diary --since '{5e1f00aa:42}'",
        ],
        "conflicts": [
            "tidemark conflicts notes",
            "tidemark conflicts show notes diary monday",
            "tidemark conflicts replay notes diary --policy auto",
            "tidemark conflicts resolve notes diary monday --keep local",
        ],
        "digest": [
            "tidemark digest notes",
            "tidemark digest phone laptop",
            "tidemark digest phone laptop --dataset diary --json",
        ],
        "peers": [
            "tidemark peers notes",
            "tidemark peers list notes --dataset diary --json",
            "tidemark peers retire notes 5e1f00aa",
        ],
        "pending": [
            "tidemark pending notes",
            "tidemark pending notes --dataset diary --peer 5e1f00aa --limit 10",
            "tidemark pending notes --json",
        ],
        "failed": [
            "tidemark failed notes",
            "tidemark failed retry notes diary photo-17",
            "tidemark failed drop notes diary --all",
        ],
        "peers list": [
            "tidemark peers notes",
            "tidemark peers notes --dataset diary --json",
        ],
        "peers retire": [
            "tidemark peers retire notes 5e1f00aa",
            "tidemark peers retire notes 5e1f00aa --dataset diary",
        ],
        "failed list": [
            "tidemark failed list notes",
            "tidemark failed list notes --dataset diary --dropped --json",
        ],
        "failed retry": [
            "tidemark failed retry notes diary photo-17",
            "tidemark failed retry notes diary --all",
        ],
        "failed drop": [
            "tidemark failed drop notes diary photo-17",
            "tidemark failed drop notes diary --all",
        ],
        "conflicts list": [
            "tidemark conflicts list notes --waiting",
            "tidemark conflicts list notes --dataset diary --limit 10 --json",
        ],
        "conflicts show": [
            "tidemark conflicts show notes diary monday",
            "tidemark conflicts show notes diary monday --json",
        ],
        "conflicts replay": [
            "tidemark conflicts replay notes diary --policy auto",
            "tidemark conflicts replay notes diary --policy remote --key monday",
            "tidemark conflicts replay notes diary --policy lww --json",
        ],
        "conflicts resolve": [
            "tidemark conflicts resolve notes diary monday --keep local",
            "tidemark conflicts resolve notes diary monday --value both",
            "tidemark conflicts resolve notes diary monday --delete",
        ],
        "repair": ["tidemark repair notes", "tidemark repair notes --to mended"],
        "salvage": ["tidemark salvage notes/000003.seg > records.jsonl"],
        "backup": ["tidemark backup notes /mnt/disk/notes"],
        "restore": ["tidemark restore /mnt/disk/notes --to notes"],
        "check-bundle": ["tidemark check-bundle diary.bundle"],
        "top": [
            "tidemark top https://hub.example.org --token-file token",
            "tidemark top notes --interval 5",
            "tidemark top notes --once --json",
        ],
        "report": [
            "tidemark report notes -o notes.html",
            "tidemark report notes -o notes.html --json",
        ],
        "manual": [
            "tidemark manual | man -l -", "tidemark manual > /usr/share/man/man1/tidemark.1",
        ],
        "completions": [
            "tidemark completions bash > /etc/bash_completion.d/tidemark",
            "tidemark completions zsh > ~/.zsh/completions/_tidemark",
            "tidemark completions fish > ~/.config/fish/completions/tidemark.fish",
        ],
        "bench": ["tidemark bench --quick"],
        "simulate": ["tidemark simulate --seed 1 --seconds 60"],
        "soak": ["tidemark soak 0.5"],
    ]
}
