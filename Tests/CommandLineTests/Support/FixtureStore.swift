// A bakery's store, the same to the byte each time it is made, and that of one of its peers.
//
// Three replicas exchange it, all of it written between 06:00 and 12:00 on the 2nd of March 2026:
//
//     shop    a0000001...  ada     the store that tests look into
//     phone   b0000002...  grace   up to date but for what failed, or waits
//     kiosk   c0000003...  kiosk   far behind: last met at the beginning
//
// What is in the shop's store, by dataset:
//
//     stock    flour: a lost update ("40 sacks" by ada and "22 sacks" by grace, neither having
//              seen the other; the last writer won; in the journal), sugar: many versions, salt
//              and rye: deleted, so that the kiosk's lag holds tombstones; yeast: a write of the
//              kiosk dated 2096, held
//     recipes  bread: a conflict merged into a third version that descends from both (custom)
//     prices   bun: a conflict that waits (pending); cake: a value of the phone's that was refused
//              (failed)
//     photos   values apart from their keys, in two value files; three of 400 KiB in the logs
//     drafts   deleted
//     odd      keys that a careless program would trip over
//
// Its files: three segments, two value files, two logs of which one waits to be sealed, a manifest.

import TestSupport
import Tidemark
import TidemarkSync

/// Where the stores are, and who is who.
struct FixtureNames: Sendable {
    /// The shop's store.
    let store: String
    /// The phone's; nil if only the shop's was made.
    let peer: String?

    static let shop = ReplicaID(high: 0xA000_0001_0000_0000, low: 0xA1)
    static let phone = ReplicaID(high: 0xB000_0002_0000_0000, low: 0xB2)
    static let kiosk = ReplicaID(high: 0xC000_0003_0000_0000, low: 0xC3)
    /// 2026-03-02T06:00:00Z, in milliseconds since 1970: when all begins.
    static let start: UInt64 = 1_772_431_200_000

    /// What tests replace in outputs: the directories.
    var replacements: [String: String] {
        var pairs = [store: "STORE"]
        if let peer { pairs[peer] = "PEER" }
        return pairs
    }
}

/// Makes the stores: once in a process, and from then on by copying.
enum FixtureStore {
    /// Makes the shop's store in `directory/store`. The directory must exist.
    static func make(in directory: String) throws -> FixtureNames {
        let names = FixtureNames(store: "\(directory)/store", peer: nil)
        try write(try made.get().shop, to: names.store)
        return names
    }

    /// Makes the shop's store in `directory/store` and the phone's in `directory/peer`.
    static func makeTwo(in directory: String) throws -> FixtureNames {
        let names = FixtureNames(store: "\(directory)/store", peer: "\(directory)/peer")
        let files = try made.get()
        try write(files.shop, to: names.store)
        try write(files.phone, to: "\(directory)/peer")
        return names
    }

    /// The files of the shop's store, made anew.
    static func shopFiles() throws -> [String: [UInt8]] {
        try Bakery().made().shop
    }

    private struct Made {
        let shop: [String: [UInt8]]
        let phone: [String: [UInt8]]
    }

    private static let made = Result<Made, any Error> { try Bakery().made() }

    private static func write(_ files: [String: [UInt8]], to directory: String) throws {
        try Files.createDirectory(directory)
        for (name, bytes) in files { try Files.write(bytes, to: "\(directory)/\(name)") }
    }

    /// The day in the bakery.
    private struct Bakery {
        private let clock = FixtureClock(FixtureNames.start)
        private let shop: FixtureReplica
        private let phone: FixtureReplica
        private let kiosk: FixtureReplica

        init() throws {
            let executor = OneThreadExecutor()
            shop = try FixtureReplica(FixtureNames.shop, author: "ada", clock, executor)
            phone = try FixtureReplica(FixtureNames.phone, author: "grace", clock, executor)
            kiosk = try FixtureReplica(
                FixtureNames.kiosk, author: "kiosk\u{1B}[2J", clock, executor)
        }

        func made() throws -> Made {
            try open()
            try loseAnUpdate()
            try mergeRecipes()
            try takePhotos()
            try leaveUnsettled()
            try goOn()
            return Made(shop: try shop.killed(), phone: try phone.killed())
        }

        /// All three know the same; then the first segment is sealed.
        private func open() throws {
            let stock = [
                ("flour", "25 sacks"), ("rye", "6 sacks"), ("salt", "8 kg"), ("sugar", "10 bags"),
                ("yeast", "40 cubes"),
            ]
            for (key, value) in stock {
                try shop.put(value, "stock", key)
                clock.wait(minutes: 1)
            }
            try shop.put(#"{"flour": 500, "water": 300}"#, "recipes", "bread")
            try shop.put(#"{"butter": 80}"#, "recipes", "cake")
            try shop.put("1.20", "prices", "bun")
            try shop.put("no name yet", "drafts", "first")
            for name in ["stock", "recipes", "prices"] {
                try phone.exchange(name, with: shop)
                try kiosk.exchange(name, with: shop)
            }
            clock.wait(minutes: 30)
            try shop.store.sealAll()
        }

        private func loseAnUpdate() throws {
            try shop.put("40 sacks", "stock", "flour")
            clock.wait(minutes: 4)
            try phone.put("22 sacks", "stock", "flour")
            clock.wait(minutes: 20)
            try shop.exchange("stock", with: phone)
            for count in 1...3 {
                try shop.put("\(10 - count) bags", "stock", "sugar")
                clock.wait(minutes: 10)
            }
            try shop.delete("stock", "salt")
            try shop.exchange("stock", with: phone)
        }

        private func mergeRecipes() throws {
            try shop.put(#"{"flour": 500, "water": 320}"#, "recipes", "bread")
            clock.wait(minutes: 3)
            try phone.put(#"{"flour": 450, "water": 300}"#, "recipes", "bread")
            clock.wait(minutes: 3)
            try shop.exchange(
                "recipes", with: phone,
                .custom { _ in .value(Array(#"{"flour": 450, "water": 320}"#.utf8)) })
        }

        /// Values that lie apart from their keys, and some of them replaced.
        private func takePhotos() throws {
            for number in 1...4 {
                try shop.put(photo(number, bytes: 300 * number), "photos", "shelf \(number)")
            }
            try shop.store.deleteDataset("drafts")
            clock.wait(minutes: 15)
            try shop.store.sealAll()
            try shop.put(photo(5, bytes: 700), "photos", "shelf 2")
            try shop.delete("photos", "shelf 3")
            try shop.delete("stock", "rye")
            try shop.put("24 sacks", "stock", "flour")
            clock.wait(minutes: 15)
            try shop.store.sealAll()
        }

        private func photo(_ number: Int, bytes: Int) -> String {
            String(String(repeating: "photo \(number) ", count: bytes / 8 + 1).prefix(bytes))
        }

        private struct Refusal: Error, CustomStringConvertible {
            let description = "a price is a number"
        }

        private func leaveUnsettled() throws {
            try phone.put("free", "prices", "cake")
            try phone.put("0.90", "prices", "roll")
            clock.wait(minutes: 1)
            try shop.exchange(
                "prices", with: phone,
                validate: { record in if record.valueText == "free" { throw Refusal() } },
                endsWith: .recordRefused)
            try shop.put("1.30", "prices", "bun")
            clock.wait(minutes: 2)
            try phone.put("1.25", "prices", "bun")
            clock.wait(minutes: 2)
            try shop.exchange(
                "prices", with: phone, .leavePending, endsWith: .conflictPending)
            kiosk.disk.putForward(milliseconds: 70 * 365 * 86_400_000)
            try kiosk.put("0 cubes", "stock", "yeast")
            // By way of the phone, so that the shop does not hear how far the kiosk has come.
            try phone.exchange("stock", with: kiosk)
            try shop.exchange("stock", with: phone)
        }

        /// What is in the logs: three values of 400 KiB, of which the first two fill one log.
        private func goOn() throws {
            clock.wait(minutes: 60)
            for number in 6...8 {
                try shop.put(photo(number, bytes: 400 << 10), "photos", "wall \(number)")
                clock.wait(minutes: 1)
            }
            for key in HostileKeys.all.prefix(7) {
                try shop.store.dataset("odd").put(Array("odd".utf8), for: key)
            }
            try shop.put("21 sacks", "stock", "flour")
            try shop.delete("recipes", "cake")
            try shop.store.sync()
        }
    }
}
