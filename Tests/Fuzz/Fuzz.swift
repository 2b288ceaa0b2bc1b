internal import Glibc

/// The entries that libFuzzer calls. The target is named by `TIDEMARK_FUZZ_TARGET`; with
/// `TIDEMARK_FUZZ_SEEDS` naming a directory, the first corpus of each target is written there.

private let target: FuzzTarget = {
    let name = unsafe getenv("TIDEMARK_FUZZ_TARGET").map { unsafe String(cString: $0) }
    guard let name, let target = FuzzTarget(rawValue: name) else {
        fatalError("TIDEMARK_FUZZ_TARGET must be one of \(FuzzTarget.allCases.map(\.rawValue))")
    }
    return target
}()

@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>
) -> Int32 {
    if let directory = unsafe getenv("TIDEMARK_FUZZ_SEEDS") {
        FirstCorpus(directory: unsafe String(cString: directory)).write()
        exit(0)
    }
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    target.run(unsafe Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
