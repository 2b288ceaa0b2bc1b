// Runs simulated replicas, seed after seed, for as long as it is told, and holds what they end
// with against each other and against what was acknowledged. A seed that fails is shrunk to the
// shortest schedule that still fails, and printed; the status is then 1.
//
//     Simulate --seed N --seconds S [--only] [--go-on] [--bug NAME] [--trace] ...

import Glibc
import Simulation
import TestSupport
import Tidemark

// Swift seeds its hashing anew in each process; whatever leans on the order of a set would differ
// from run to run of one seed.
if unsafe getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    unsafe setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var arguments = unsafe CommandLine.arguments.map { unsafe strdup($0) } + [nil]
    unsafe execv("/proc/self/exe", &arguments)
}

guard let options = SimulateOptions(Array(CommandLine.arguments.dropFirst())) else {
    say(SimulateOptions.usage)
    exit(2)
}
exit(SimulateRun(options).run() ? 0 : 1)
