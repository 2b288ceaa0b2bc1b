import TidemarkSync

/// How often who may ask.
struct RequestRates: Sendable {
    private let addresses: RateLimiter
    private let identities: RateLimiter
    private let newIdentities: RateLimiter
    private let environment: any SyncEnvironment

    init(_ settings: ProtectionSettings, environment: any SyncEnvironment) {
        func limiter(_ perSecond: Int, _ burst: Int) -> RateLimiter {
            RateLimiter(
                RateLimiter.Rate(perSecond: perSecond, burst: burst), namesMax: settings.ratesMax)
        }
        addresses = limiter(settings.requestsPerSecondOfAddress, settings.requestBurstOfAddress)
        identities = limiter(
            settings.requestsPerSecondOfIdentity, settings.requestBurstOfIdentity)
        newIdentities = limiter(
            settings.newIdentitiesPerSecondOfAddress, settings.newIdentityBurstOfAddress)
        self.environment = environment
    }

    /// - Throws: `tooManyRequests`, with when to come again.
    func check(address: String?) throws(APIFailure) {
        try take(addresses, address)
    }

    /// Developers ask as often as they like: their keys are the operator's own.
    ///
    /// - Throws: `tooManyRequests`.
    func check(_ principal: Principal) throws(APIFailure) {
        guard case .identity(let identity, _, _) = principal else { return }
        try take(identities, identity.text)
    }

    /// - Throws: `tooManyRequests`.
    func checkNewIdentity(address: String?) throws(APIFailure) {
        try take(newIdentities, address)
    }

    private func take(_ limiter: RateLimiter, _ name: String?) throws(APIFailure) {
        guard let name, let seconds = limiter.take(name, now: environment.now()) else { return }
        throw APIFailure(
            .tooManyRequests, "Rate exceeded; repeat the request in \(seconds) s",
            retryAfterSeconds: seconds)
    }
}
