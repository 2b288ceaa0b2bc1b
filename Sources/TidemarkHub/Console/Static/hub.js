// The hub itself: all at a glance, the settings in force, and what was done at this console.

import { get } from "./api.js";
import { bytes, el, empty, facts, grouped, head, link, replica, shownText, size, table, tag, time } from "./dom.js";
import { pager } from "./lists.js";

export async function showOverview(parameters, { signal }) {
    const hub = await get("overview", {}, signal);
    const figure = (title, value, about) => el("section", { class: "card" },
        el("h2", {}, title), el("div", { class: "figure" }, value), el("div", { class: "quiet small" }, about));
    return [
        head("Overview", "", hub.isWriterStopped ? tag("does not write", "bad") : tag("takes writes", "good"),
            hub.damages ? tag(`${hub.damages} damaged places`, "bad") : null),
        el("div", { class: "grid" },
            figure("Written", grouped(hub.puts), `values, and ${grouped(hub.deletes)} deletions since the start`),
            figure("On disk", size(hub.segmentBytes + hub.logBytes), `${grouped(hub.segments)} segments, ${grouped(hub.logs)} logs`),
            figure("Compaction", grouped(hub.merges), `merges, which dropped ${grouped(hub.entriesDropped)} versions`),
            figure("Devices", grouped(hub.connectedDevices), "listen at this moment")),
        el("section", { class: "card" }, el("h2", {}, "This hub"), facts([
            ["Replica", el("span", { class: "bytes" }, hub.replica)],
            ["Pools", grouped(hub.pools)],
            ["Runs of segments", grouped(hub.runs)],
            ["Expired records", grouped(hub.recordsExpired)],
            ["Commits", grouped(hub.commits)],
            ["Consoles open", grouped(hub.sessions)],
            ["Its clock", time(hub.time)],
        ])),
    ];
}

export async function showSettings(parameters, { signal }) {
    const { groups } = await get("settings", {}, signal);
    return [
        head("Settings", "As in force since the hub was started. Secrets are not shown, only whether there are any."),
        groups.map((group) => el("section", { class: "card" }, el("h2", {}, shownText(group.title)),
            facts(group.rows.map((row) => [row.name, el("span", { class: "bytes" }, shownText(row.value))])))),
    ];
}

const states = { asked: "", done: "good", refused: "bad" };

export async function showAudit(parameters, { signal }) {
    const list = pager({
        operation: "audit", signal, limit: null, cursor: "before", parameters: () => ({}),
        none: () => empty("Nothing was changed", "Each edit at this console appears here, when it is asked for and when it is done."),
        draw: (rows) => table("Audit", [
            { name: "When", isTime: true, cell: (row) => time(row.time) },
            { name: "What", cell: (row) => [tag(row.action), " ", tag(row.state, states[row.state])] },
            { name: "Dataset", cell: (row) => (row.dataset ? link("records", { dataset: row.dataset }, row.dataset) : row.identity ?? "") },
            {
                name: "About", cell: (row) => [row.key ? bytes(row.key) : null, row.device ?? null,
                    row.resolution ? ` ${row.resolution}` : null, row.valueBytes !== undefined ? ` ${size(row.valueBytes)}` : null,
                    row.code ? el("div", { class: "quiet small" }, row.code) : null],
            },
            { name: "Session", cell: (row) => el("span", { class: "bytes" }, row.session) },
            { name: "From", cell: (row) => row.address ?? "" },
        ], rows),
    });
    await list.begin();
    return [
        head("Audit", "What was asked for at this console and what came of it. The file console-audit.jsonl in the store's directory is only ever appended to."),
        list.element,
    ];
}
