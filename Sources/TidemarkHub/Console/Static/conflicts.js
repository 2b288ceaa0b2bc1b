// Conflicts that wait, side by side with what both descend from, and those that were settled.

import { change, get } from "./api.js";
import { address, bytes, el, empty, head, link, replica, shownText, table, tag, time } from "./dom.js";
import { differences } from "./diff.js";
import { pager } from "./lists.js";

export async function showConflicts(parameters, { signal }) {
    const state = el("select", { id: "state" },
        el("option", { value: "waiting" }, "waiting"), el("option", { value: "settled" }, "settled"));
    if (parameters.state === "settled") state.value = "settled";
    const list = pager({
        operation: "conflicts", signal,
        parameters: () => ({ state: state.value, dataset: parameters.dataset }),
        none: () => (state.value === "waiting"
            ? empty("No conflict waits", "Everything that met here was settled by a policy, or by somebody.")
            : empty("No conflict was settled", "The journal of this hub is empty.")),
        draw: (rows) => (state.value === "waiting" ? waitingTable(rows) : settledTable(rows)),
    });
    state.addEventListener("change", list.again);
    await list.begin();
    return [
        head("Conflicts", "Two versions of one record, neither written by somebody who had seen the other."),
        el("form", { class: "bar", onsubmit: (event) => event.preventDefault() },
            el("label", { for: "state" }, "Show those that are", state)),
        list.element,
    ];
}

function side(content) {
    if (content.isDeleted) return tag("deleted", "bad");
    if (content.leftOutBytes !== undefined) return el("span", { class: "quiet" }, "not kept, it was long");
    return bytes(content.value);
}

function waitingTable(rows) {
    return table("Conflicts that wait", [
        { name: "Key", cell: (row) => link("conflict", { dataset: row.dataset, id: row.id }, bytes(row.key)) },
        { name: "Dataset", cell: (row) => link("records", { dataset: row.dataset }, row.dataset), sort: (row) => row.dataset },
        { name: "Here", cell: (row) => side(row.local) },
        { name: "There", cell: (row) => side(row.remote) },
        { name: "Since", isTime: true, cell: (row) => time(row.since), sort: (row) => row.since },
    ], rows, (row) => address("conflict", { dataset: row.dataset, id: row.id }));
}

function settledTable(rows) {
    return table("Settled conflicts", [
        {
            name: "Key", cell: (row) => (row.id
                ? link("record", { dataset: row.dataset, id: row.id }, bytes(row.key)) : bytes(row.key)),
        },
        { name: "Dataset", cell: (row) => link("records", { dataset: row.dataset }, row.dataset), sort: (row) => row.dataset },
        { name: "Here", cell: (row) => side(row.local) },
        { name: "There", cell: (row) => side(row.remote) },
        { name: "Came to", cell: (row) => [side(row.outcome), " ", tag(row.decision)] },
        { name: "By", cell: (row) => row.policy, sort: (row) => row.policy },
        { name: "When", isTime: true, cell: (row) => time(row.time), sort: (row) => row.time },
    ], rows);
}

const ancestries = {
    nonexistent: "Both sides made the record without having seen the other's.",
    notKept: "What both descend from is not kept here any more.",
};

export async function showConflict(parameters, context) {
    const { signal, notify, confirmed } = context;
    const { dataset, id } = parameters;
    const { rows } = await get("conflict", { dataset, id }, signal);
    const [conflict] = rows;
    const settle = async (resolution, about, value) => {
        if (!await confirmed("Settle this conflict?", el("p", {}, about), "Settle", false)) return;
        try {
            await change("resolve", { dataset, id: conflict.id, at: conflict.local.dot, resolution, value });
            notify("The conflict was settled.");
            location.hash = address("record", { dataset, id: conflict.id });
        } catch (error) {
            notify(error.message, true);
        }
    };
    const text = (content) => (content?.isDeleted ? "" : content?.value?.text);
    const merged = el("textarea", { id: "merged", spellcheck: "false" });
    merged.value = text(conflict.local) ?? "";
    const isWhole = [conflict.local, conflict.remote].every(
        (content) => content.isDeleted || (content.value.text !== undefined && content.value.to === undefined));
    return [
        head("Conflict", "", link("records", { dataset }, dataset)),
        el("section", { class: "card" },
            el("div", {}, bytes(conflict.key)),
            el("p", { class: "quiet" }, `It waits since `, time(conflict.since), `, because ${conflict.reason}. The other side is `,
                replica(conflict.peer), rows.length > 1 ? `; ${rows.length} versions wait.` : ".")),
        el("section", { class: "card" }, el("h2", {}, "Three ways"),
            el("div", { class: "sides" },
                conflict.ancestor ? column("Both descend from", conflict.ancestor, null)
                    : el("div", { class: "side" }, el("h3", {}, "Both descend from"), el("p", { class: "quiet" }, ancestries[conflict.ancestry])),
                column("Here", conflict.local, conflict.ancestor),
                rows.map((row) => column(rows.length > 1 ? `There (${row.peer.slice(0, 8)})` : "There", row.remote, row.ancestor))),
            el("p", { class: "quiet small" }, "Lines that a side has added are marked, and those that it has taken away are struck through.")),
        el("section", { class: "card" }, el("h2", {}, "Settle it"),
            el("div", { class: "actions" },
                el("button", { type: "button", id: "keep-local", onclick: () => settle("keepLocal", "What is here stays.") }, "Keep what is here"),
                el("button", { type: "button", id: "keep-remote", onclick: () => settle("keepRemote", "What is there takes its place.") }, "Take what is there"),
                el("button", { type: "button", class: "danger", onclick: () => settle("delete", "The record is deleted.") }, "Delete the record")),
            isWhole ? el("form", {
                onsubmit: (event) => {
                    event.preventDefault();
                    settle("value", "The text that you wrote takes the place of both.", merged.value);
                },
            }, el("h3", {}, "Or write what it is to be"), el("label", { for: "merged" }, "Merged value", merged),
            el("div", { class: "actions" }, el("button", { type: "submit", id: "settle-value" }, "Write this")))
                : el("p", { class: "quiet" }, "A value is binary or long, so it cannot be merged here by hand.")),
    ];
}

function column(title, content, ancestor) {
    const place = el("div", { class: "side" }, el("h3", {}, title),
        el("p", { class: "quiet small" }, time(content.time), " ", replica(content.replica), content.author ? ` of ${content.author}` : ""));
    if (content.isDeleted) {
        place.append(tag("deleted", "bad"));
        return place;
    }
    const [before, after] = [ancestor?.value?.text, content.value.text];
    const lines = before !== undefined && after !== undefined ? differences(before, after) : null;
    if (!lines) {
        place.append(bytes(content.value, { block: true }));
        return place;
    }
    place.append(el("pre", { class: "bytes", dir: "auto", tabindex: "0" }, lines.map(
        ({ kind, line }) => el("span", { class: `diff ${kind}`.trim() }, shownText(line), line === "" ? "\u00a0" : ""))));
    return place;
}
