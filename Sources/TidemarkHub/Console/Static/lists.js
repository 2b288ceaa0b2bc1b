// Identities and datasets: searched, sorted and paged by the hub.

import { get } from "./api.js";
import { address, el, empty, facts, grouped, head, link, replace, shownText, table, tag, time } from "./dom.js";
import { deviceTable } from "./replicas.js";

/**
 * A list that the hub hands out page by page. What is typed is looked for after a moment, and the
 * next page is appended, so that what was read stays.
 */
export function pager({ operation, parameters, limit = 50, cursor = "after", draw, none, signal }) {
    const place = el("div", { class: "card" });
    const status = el("p", { class: "quiet small", role: "status" });
    const more = el("button", { type: "button", class: "plain" }, "More");
    let rows = [];
    let next;
    let asked = 0;
    const load = async () => {
        asked += 1;
        const mine = asked;
        more.disabled = true;
        const answer = await get(operation, { ...parameters(), limit, [cursor]: next }, signal);
        if (mine !== asked) return;
        rows = rows.concat(answer.rows);
        next = answer.next;
        more.disabled = false;
        more.hidden = next === undefined;
        more.textContent = answer.rows.length ? "More" : "Look further";
        status.textContent = rows.length === 0 && next !== undefined
            ? "Nothing in this stretch; there is more to look at." : `${grouped(rows.length)} shown${next ? ", and there are more" : ""}.`;
        if (answer.lookedAt !== undefined) {
            status.textContent += ` Only the first ${grouped(answer.lookedAt)} by name are sorted: search for the beginning of a name.`;
        }
        replace(place, rows.length || next !== undefined ? draw(rows) : none());
    };
    const begin = async () => {
        rows = [];
        next = undefined;
        await load();
    };
    const guarded = (body) => body().catch((error) => {
        if (error.name !== "AbortError") status.textContent = error.message;
        more.disabled = false;
    });
    more.addEventListener("click", () => guarded(load));
    return {
        element: el("div", {}, place, el("div", { class: "actions" }, more, status)),
        begin, again: () => guarded(begin),
    };
}

/**
 * An order that the hub puts a list in, chosen in a field or by the heads of the table.
 *
 * `list()` gives the pager, which is made with this at hand.
 */
function ordering(choices, chosen, list) {
    const field = el("select", { id: "order" }, choices.map(([value, text]) => el("option", {
        value, selected: value === chosen,
    }, text)));
    field.addEventListener("change", () => list().again());
    return {
        field,
        /** For the table: where the keyboard was, in the head of the column, it is again. */
        get sorting() {
            return {
                order: field.value,
                choose: async (wanted) => {
                    field.value = wanted;
                    await list().again();
                    list().element.querySelector("th[aria-sort] button")?.focus();
                },
            };
        },
    };
}

/** Calls back a moment after the last key. */
export function typing(body, signal) {
    let timer;
    signal.addEventListener("abort", () => clearTimeout(timer));
    return () => {
        clearTimeout(timer);
        timer = setTimeout(body, 250);
    };
}

export async function showIdentities(parameters, { signal }) {
    const search = el("input", {
        type: "search", id: "search", value: parameters.q ?? "", spellcheck: "false",
        placeholder: "us-east-1:… or a login",
    });
    const order = ordering([
        ["id", "by id, rising"], ["-id", "by id, falling"],
        ["-created", "by creation, newest first"], ["created", "by creation, oldest first"],
        ["-modified", "by change, newest first"], ["modified", "by change, oldest first"],
    ], parameters.sort ?? "id", () => list);
    const list = pager({
        operation: "identities", signal,
        parameters: () => ({ q: search.value.trim(), sort: order.field.value }),
        none: () => empty("No identity", search.value
            ? "Nothing matches. An id is found by its beginning, any other text in logins and ids."
            : "An identity comes with the first app that asks for one."),
        draw: (rows) => table("Identities", [
            { name: "Identity", order: "id", cell: (row) => link("identity", { identity: row.identity }, row.identity) },
            { name: "Logins", cell: loginsCell },
            { name: "State", cell: stateCell },
            { name: "Created", isTime: true, order: "created", cell: (row) => time(row.created) },
            { name: "Changed", isTime: true, order: "modified", cell: (row) => time(row.modified) },
        ], rows, (row) => address("identity", { identity: row.identity }), order.sorting),
    });
    search.addEventListener("input", typing(list.again, signal));
    await list.begin();
    return [
        head("Identities", "Who has data here. An id is found at once by its beginning; other text is looked for page by page."),
        el("form", { class: "bar", onsubmit: (event) => event.preventDefault(), role: "search" },
            el("label", { class: "grow", for: "search" }, "Search", search),
            el("label", { for: "order" }, "Order", order.field)),
        list.element,
    ];
}

function loginsCell(row) {
    if (row.isUnreadable) return tag("not readable", "bad");
    if (!row.logins.length) return el("span", { class: "quiet" }, row.mergedInto ? "none left" : "guest");
    return row.logins.map((login) => el("div", {},
        el("span", { class: "bytes line" }, shownText(login.subject)), " ",
        el("span", { class: "quiet small" }, login.provider)));
}

function stateCell(row) {
    if (row.isUnreadable) return "";
    if (row.isMerging) return tag("being merged", "warn");
    if (row.mergedInto) return tag("merged", "warn");
    return row.isEnabled ? tag("in use", "good") : tag("ended", "bad");
}

export async function showIdentity(parameters, context) {
    const { signal } = context;
    const identity = await get("identity", { identity: parameters.identity }, signal);
    const devices = await get("devices", { identity: parameters.identity }, signal);
    return [
        head("Identity", ""),
        el("section", { class: "card" }, facts([
            ["Id", el("span", { class: "bytes" }, identity.identity)],
            ["Pool", identity.pool],
            ["Logins", loginsCell(identity)],
            ["State", stateCell(identity)],
            identity.mergedInto && ["Merged into", link("identity", { identity: identity.mergedInto }, identity.mergedInto)],
            ["Created", time(identity.created)],
            ["Changed", time(identity.modified)],
        ])),
        el("section", { class: "card" }, el("h2", {}, "Datasets"), identity.datasets.length
            ? datasetTable(identity.datasets) : empty("No dataset", "It has not written anything yet."),
        identity.hasMore ? el("p", { class: "quiet" }, "There are more; see Datasets.") : null),
        el("section", { class: "card" }, el("h2", {}, "Devices"), devices.rows.length
            ? deviceTable(devices.rows, context) : empty("No device", "None has registered for push.")),
    ];
}

/** Of a page of all datasets, which the hub sorts, or of all that an identity has. */
function datasetTable(rows, sorting = null) {
    return table("Datasets", [
        {
            name: "Dataset", order: "name", cell: (row) => link("records", { dataset: row.dataset }, row.name ?? row.dataset),
            sort: (row) => row.dataset,
        },
        {
            name: "Owner", cell: (row) => (row.identity
                ? link("identity", { identity: row.identity }, row.identity) : el("span", { class: "quiet" }, "shared")),
        },
        { name: "Operations", number: true, order: "count", cell: (row) => grouped(row.count), sort: (row) => row.count },
        { name: "Replicas", number: true, order: "replicas", cell: (row) => grouped(row.replicas), sort: (row) => row.replicas },
        { name: "Created", isTime: true, order: "created", cell: (row) => time(row.created), sort: (row) => row.created },
    ], rows, (row) => address("records", { dataset: row.dataset }), sorting);
}

export async function showDatasets(parameters, { signal }) {
    const prefix = el("input", { type: "search", id: "prefix", value: parameters.prefix ?? "", spellcheck: "false" });
    const part = el("input", { type: "search", id: "part", value: parameters.q ?? "", spellcheck: "false" });
    const order = ordering([
        ["name", "by name, rising"], ["-name", "by name, falling"],
        ["-count", "by operations, most first"], ["count", "by operations, fewest first"],
        ["-replicas", "by replicas, most first"], ["replicas", "by replicas, fewest first"],
        ["-created", "by creation, newest first"], ["created", "by creation, oldest first"],
    ], parameters.sort ?? "name", () => list);
    const list = pager({
        operation: "datasets", signal, draw: (rows) => datasetTable(rows, order.sorting),
        parameters: () => ({ prefix: prefix.value.trim(), q: part.value.trim(), sort: order.field.value }),
        none: () => empty("No dataset", prefix.value || part.value
            ? "No name begins so or holds that." : "A dataset comes with the first write of an app or a replica."),
    });
    for (const field of [prefix, part]) field.addEventListener("input", typing(list.again, signal));
    await list.begin();
    return [
        head("Datasets", "A dataset of an identity is called by the id, a colon and the name that apps use."),
        el("form", { class: "bar", onsubmit: (event) => event.preventDefault(), role: "search" },
            el("label", { class: "grow", for: "prefix" }, "Begins with", prefix),
            el("label", { class: "grow", for: "part" }, "Holds", part),
            el("label", { for: "order" }, "Order", order.field)),
        list.element,
    ];
}
