// Written by tools/embed-console. Change the files in Static, then run that.

/// The files of the console's page.
enum ConsoleFiles {
    static let all = [
        apiJS,
        appJS,
        chartsJS,
        conflictsJS,
        diffJS,
        domJS,
        graphJS,
        hubJS,
        iconSVG,
        indexHTML,
        listsJS,
        liveJS,
        recordsJS,
        replicasJS,
        styleCSS,
    ]
}
