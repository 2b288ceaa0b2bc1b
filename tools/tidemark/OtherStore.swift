extension StoreArgument {
    /// A store that is named by something else than the first argument.
    init(path: String) {
        self.init()
        store = path
    }
}
