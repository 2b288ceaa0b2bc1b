import Glibc

/// How many files and connections a process may have open at once.
///
/// Connections that take the last of them take those that the store needs for its files, and a
/// store that cannot make a file stops writing: so the hub takes fewer connections than that.
package enum DescriptorLimit {
    /// For the store's files, and for connections that the hub itself opens.
    private static let reservedCount = 256

    /// Lets the process open as many as the system allows it: systems start processes with far
    /// fewer, mostly 1,024, for the sake of old programs. For a process that is a hub and nothing
    /// else.
    package static func raise() {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        // The structure outlives both calls.
        guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else {
            return
        }
        limit.rlim_cur = limit.rlim_max
        // If not, the bound below goes by what there is.
        _ = unsafe setrlimit(resource, &limit)
    }

    /// nil if that cannot be known.
    static var current: Int? {
        var limit = rlimit()
        // The structure outlives the call, which fills it.
        let status = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return status == 0 ? Int(clamping: limit.rlim_cur) : nil
    }

    /// Of so many that are wanted, how many connections leave the store what it needs: at least
    /// half of the descriptors, however few there are.
    static func connections(_ wanted: Int, of descriptors: Int) -> Int {
        min(wanted, max(1, descriptors / 2, descriptors - reservedCount))
    }
}
