// Parts of takings over that ended with an earlier opening. They lie in the directory until the
// dataset is taken over, gets records in another way, or a week has passed.

extension EngineState {
    /// Finds what may be gone on with, and removes what is of no use. When the store is opened,
    /// before anybody else has it.
    func loadKeptParts() throws(StoreError) {
        var kept: [KeptPart] = []
        let names = Set(try storage.listDirectory(path))
        for name in names.sorted() {
            if let number = FileName.number(in: name, ending: ".part") {
                guard !names.contains(FileName.origin(ofPart: number)) else { continue }
                try storage.remove(filePath(name))
            }
            guard let number = FileName.number(in: name, ending: ".from") else { continue }
            let part: KeptPart?
            do throws(StoreError) {
                part = try KeptPart(
                    number: number, at: filePath(name), identity: identity, storage)
            } catch {
                // Nobody can tell now of what use it is. The next opening looks again.
                fileNumbers.noteUsed(number)
                continue
            }
            if let part, names.contains(FileName.part(number)) {
                kept.append(part)
                // What is made next must not take its name.
                fileNumbers.noteUsed(number)
            } else {
                try storage.remove(filePath(FileName.part(number)))
                try storage.remove(filePath(name))
            }
        }
        keptParts = kept
    }

    /// Those of a dataset, which are nobody else's from then on.
    func takeKeptParts(of dataset: String) -> [KeptPart] {
        let taken = keptParts.filter { $0.origin.dataset == dataset }
        keptParts.removeAll { $0.origin.dataset == dataset }
        return taken
    }
}

extension EngineParts {
    /// Removes both files of a part. What cannot be removed now is at the next opening.
    func removePart(_ number: UInt64) {
        try? storage.remove(filePath(FileName.part(number)))
        try? storage.remove(filePath(FileName.origin(ofPart: number)))
    }
}
