// Records of a dataset, one record with its versions, and the edits of it.

import { change, get } from "./api.js";
import { drawHistory } from "./graph.js";
import {
    address, bytes, el, empty, facts, grouped, head, link, replica, table, tag, time,
} from "./dom.js";
import { pager, typing } from "./lists.js";

/** Longer values are for the command line: a page would have to hold all of them to save them. */
const editedBytesMax = 262144;

export async function showRecords(parameters, context) {
    const { signal } = context;
    const dataset = parameters.dataset ?? "";
    const about = await get("dataset", { dataset }, signal);
    const prefix = el("input", { type: "search", id: "prefix", value: parameters.prefix ?? "", spellcheck: "false" });
    const order = el("select", { id: "order" },
        el("option", { value: "key" }, "by key, rising"), el("option", { value: "-key" }, "by key, falling"),
        el("option", { value: "change" }, "by change, oldest first"));
    const deleted = el("input", { type: "checkbox", id: "deleted", checked: parameters.deleted === "1" });
    const list = pager({
        operation: "records", signal,
        parameters: () => ({
            dataset, prefix: prefix.value, sort: order.value, deleted: deleted.checked ? "1" : "0",
        }),
        none: () => empty("No record", prefix.value
            ? "No key begins so." : "Nothing was written, or all of it was deleted: look at the tombstones."),
        draw: (rows) => table("Records", [
            { name: "Key", cell: (row) => el("a", { href: address("record", { dataset, id: row.id }) }, bytes(row.key)) },
            { name: "Value", cell: (row) => (row.isDeleted ? tag("tombstone", "bad") : bytes(row.value)) },
            { name: "Count", number: true, cell: (row) => grouped(row.count), sort: (row) => row.count },
            { name: "Written", isTime: true, cell: (row) => time(row.time), sort: (row) => row.time },
            { name: "By", cell: (row) => [replica(row.replica), row.author ? ` ${row.author}` : ""] },
        ], rows, (row) => address("record", { dataset, id: row.id })),
    });
    prefix.addEventListener("input", typing(list.again, signal));
    for (const field of [order, deleted]) field.addEventListener("change", list.again);
    await list.begin();
    const add = () => edit(null, dataset, context, (id) => {
        location.hash = address("record", { dataset, id });
    });
    return [
        head(about.name ?? dataset, "", about.identity ? link("identity", { identity: about.identity }, about.identity) : tag("shared")),
        el("section", { class: "card" }, facts([
            ["Records", `${about.isCountedWhole ? "" : "at least "}${grouped(about.records)}`],
            ["Tombstones", `${about.isCountedWhole ? "" : "at least "}${grouped(about.tombstones)}`],
            ["Operations", grouped(about.count)],
            about.apiCount !== undefined && ["Count of the API", grouped(about.apiCount)],
            ["Created", time(about.created)],
            ["Writers", about.vector.map((one) => [replica(one.replica), ` ${grouped(one.counter)}  `])],
            about.peers.length > 0 && ["Behind", about.peers.map((peer) => [
                replica(peer.replica), ` by ${grouped(peer.lag)}  `])],
            about.conflicts > 0 && ["Conflicts", link("conflicts", { dataset }, `${about.conflicts} waiting`)],
        ])),
        el("form", { class: "bar", onsubmit: (event) => event.preventDefault(), role: "search" },
            el("label", { class: "grow", for: "prefix" }, "Key begins with", prefix),
            el("label", { for: "order" }, "Order", order),
            el("label", { class: "check", for: "deleted" }, deleted, "Tombstones"),
            el("button", { type: "button", id: "add", onclick: add }, "New record")),
        list.element,
    ];
}

export async function showRecord(parameters, context) {
    const { signal, notify, confirmed, again } = context;
    const { dataset, id } = parameters;
    const record = await get("record", { dataset, id }, signal);
    const history = await get("history", { dataset, id }, signal);
    const remove = async () => {
        const isSure = await confirmed("Delete this record?", [
            bytes(record.key), el("p", {}, "A tombstone takes its place, and devices and replicas hear of it."),
        ], "Delete");
        if (!isSure) return;
        try {
            await change("delete", { dataset, id: record.id, at: record.dot });
            notify("The record was deleted.");
            again();
        } catch (error) {
            notify(error.message, true);
        }
    };
    const value = record.isDeleted ? null : record.value;
    const rest = value && value.to < value.bytes ? el("button", {
        type: "button", class: "plain", onclick: (event) => readOn(event.currentTarget, dataset, record.id, value.to),
    }, "Read on") : null;
    return [
        head("Record", "", link("records", { dataset }, dataset)),
        el("section", { class: "card" }, facts([
            ["Key", bytes(record.key)],
            ["Size", value ? `${grouped(value.bytes)} B` : tag("tombstone", "bad")],
            ["Written", time(record.time)],
            ["By", [replica(record.replica), ` write ${grouped(record.counter)}`, record.author ? ` of ${record.author}` : ""]],
            ["Count", grouped(record.count)],
            record.expiresAt && ["Expires", time(record.expiresAt)],
            record.isDirty && ["Known", "only here so far"],
        ])),
        el("section", { class: "card" }, el("h2", {}, "Value"),
            value ? bytes(value, { block: true }) : empty("Deleted", "The versions before are below, as far as they are kept."),
            rest,
            el("div", { class: "actions" },
                el("button", { type: "button", id: "edit", onclick: () => edit(record, dataset, context, (written) => {
                    // One that is named by its place in the order of change has another now.
                    if (written === id) again(); else location.hash = address("record", { dataset, id: written });
                }) },
                    value ? "Change" : "Write again"),
                value ? el("button", { type: "button", class: "danger", id: "delete", onclick: remove }, "Delete") : null)),
        el("section", { class: "card" }, el("h2", {}, "History"),
            el("p", { class: "quiet" }, `Why this version stands: ${history.reason}.`), drawHistory(history, record.dot)),
    ];
}

async function readOn(button, dataset, id, from) {
    button.disabled = true;
    try {
        const { value } = await get("record", { dataset, id, from });
        button.before(bytes(value, { block: true }));
        if (value.to === undefined || value.to >= value.bytes) {
            button.remove();
        } else {
            button.disabled = false;
            button.replaceWith(el("button", {
                type: "button", class: "plain", onclick: (event) => readOn(event.currentTarget, dataset, id, value.to),
            }, "Read on"));
        }
    } catch (error) {
        button.textContent = error.message;
    }
}

/** Base64 of hexadecimal digits; null for what are none. */
function base64OfHex(text) {
    const digits = text.replace(/\s/g, "");
    if (digits.length % 2 || /[^0-9a-f]/i.test(digits)) return null;
    let plain = "";
    for (let index = 0; index < digits.length; index += 2) {
        plain += String.fromCharCode(parseInt(digits.slice(index, index + 2), 16));
    }
    return btoa(plain);
}

/** Asks for a value, shows what will be written, and writes it once that is confirmed. */
export async function edit(record, dataset, { notify }, done) {
    let whole = null;
    if (record && !record.isDeleted) {
        if (record.value.bytes > editedBytesMax) {
            notify("The value is too long to be changed here; use the command line.", true);
            return;
        }
        whole = await get("record", { dataset, id: record.id, bytes: editedBytesMax });
    }
    const isBinary = whole?.value?.hex !== undefined;
    const key = record ? null : el("input", { id: "edit-key", required: true, spellcheck: "false" });
    const value = el("textarea", { id: "edit-value", spellcheck: "false" });
    value.value = whole ? (isBinary ? whole.value.hex.replace(/(..)/g, "$1 ").trim() : whole.value.text) : "";
    const problem = el("p", { class: "tag bad", role: "alert", hidden: true });
    const dialog = el("dialog", { "aria-labelledby": "edit-title" });
    const send = async (event) => {
        event.preventDefault();
        const body = { dataset };
        if (record) body.id = record.id; else body.key = key.value;
        if (whole) body.at = whole.dot;
        if (isBinary) body.valueBase64 = base64OfHex(value.value); else body.value = value.value;
        if (body.valueBase64 === null) {
            problem.hidden = false;
            problem.textContent = "These are no hexadecimal digits.";
            return;
        }
        try {
            const written = await change("put", body);
            dialog.close();
            notify("The record was written.");
            done(written.id);
        } catch (error) {
            problem.hidden = false;
            problem.textContent = error.message;
        }
    };
    dialog.append(el("form", { onsubmit: send },
        el("h2", { id: "edit-title" }, record ? "Change this record" : "New record"),
        key ? el("label", { for: "edit-key" }, "Key", key) : bytes(record.key),
        el("label", { for: "edit-value" }, isBinary ? "Value, in hexadecimal digits" : "Value", value),
        el("label", { class: "check", for: "edit-sure" },
            el("input", { type: "checkbox", id: "edit-sure", required: true }),
            "I want to write this: devices and replicas hear of it, and the audit has it."),
        problem,
        el("div", { class: "actions" },
            el("button", { type: "submit", id: "edit-save" }, "Write"),
            el("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Cancel"))));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
}
