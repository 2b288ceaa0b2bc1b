// Does everything at once to one store for as long as it is told, and holds what it reads against
// models that are kept beside:
//
//     Soak DIRECTORY MINUTES SEED        the run itself
//     Soak child DIRECTORY SEED FIRST    a writer that the run starts and kills
//
// Ends with the number of operations and differences; the status is 1 if there was a difference.

import Glibc
import TestSupport
import Tidemark

let arguments = CommandLine.arguments
do {
    if arguments.count == 5, arguments[1] == "child", let seed = Seed(arguments[3]),
        let first = UInt64(arguments[4])
    {
        try SoakChild(seed).write(to: arguments[2], from: first)
    } else if arguments.count == 4, let minutes = Double(arguments[2]),
        let seed = Seed(arguments[3])
    {
        exit(try SoakRun(arguments[1], seconds: minutes * 60, seed).run() ? 0 : 1)
    } else {
        say("usage: Soak DIRECTORY MINUTES SEED")
        exit(2)
    }
} catch {
    say("soak: \(error)")
    exit(1)
}
