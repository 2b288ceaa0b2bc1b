// Who exchanges data with the hub: replicas by dataset, and devices that want to be told.

import { change, get } from "./api.js";
import { address, bytes, el, empty, grouped, head, link, replica, shownText, table, tag, time } from "./dom.js";
import { pager } from "./lists.js";

function lag(count) {
    return count === 0 ? tag("up to date", "good") : tag(`${grouped(count)} behind`, count > 1000 ? "bad" : "warn");
}

export async function showReplicas(parameters, { signal }) {
    const list = pager({
        operation: "replicas", signal, parameters: () => ({}),
        none: () => empty("No replica", "None has exchanged a dataset with this hub yet."),
        draw: (rows) => table("Replicas", [
            { name: "Replica", cell: (row) => replica(row.replica), sort: (row) => row.replica },
            { name: "Dataset", cell: (row) => link("records", { dataset: row.dataset }, row.dataset), sort: (row) => row.dataset },
            { name: "Lag", cell: (row) => lag(row.lag), sort: (row) => row.lag },
            { name: "Has", number: true, cell: (row) => `${grouped(row.acknowledged)} of ${grouped(row.count)}` },
            { name: "Pulled", number: true, cell: (row) => grouped(row.pulledThrough) },
        ], rows, (row) => address("records", { dataset: row.dataset })),
    });
    await list.begin();
    return [
        head("Replicas", "Each with the datasets that it has exchanged, and how many operations of the hub it is not known to have."),
        list.element,
    ];
}

export function deviceTable(rows, { notify, confirmed, again }) {
    const revoke = async (row) => {
        const isSure = await confirmed("Revoke this device?", [
            el("p", {}, shownText(row.device)),
            el("p", {}, "It is forgotten with what it has subscribed to, and its connection is closed. "
                + "Its data stays. It can register again as long as its identity is in use."),
        ], "Revoke");
        if (!isSure) return;
        try {
            await change("revoke", { identity: row.identity, device: row.device });
            notify("The device was revoked.");
            again();
        } catch (error) {
            notify(error.message, true);
        }
    };
    return table("Devices", [
        { name: "Device", cell: (row) => bytes({ text: row.device, bytes: row.device.length }) },
        { name: "Identity", cell: (row) => link("identity", { identity: row.identity }, row.identity) },
        { name: "Platform", cell: (row) => row.platform, sort: (row) => row.platform },
        { name: "State", cell: (row) => (row.isConnected ? tag("listens", "good") : tag("away")), sort: (row) => String(row.isConnected) },
        { name: "Subscriptions", number: true, cell: (row) => grouped(row.subscriptions), sort: (row) => row.subscriptions },
        { name: "Lag", cell: (row) => lag(row.lag), sort: (row) => row.lag },
        { name: "Registered", isTime: true, cell: (row) => time(row.created), sort: (row) => row.created },
        { name: "", cell: (row) => el("button", { type: "button", class: "plain revoke", onclick: () => revoke(row) }, "Revoke") },
    ], rows, (row) => address("identity", { identity: row.identity }));
}

export async function showDevices(parameters, context) {
    const { signal } = context;
    const list = pager({
        operation: "devices", signal, parameters: () => ({ identity: parameters.identity }),
        none: () => empty("No device", "Devices come when apps register them for push."),
        draw: (rows) => deviceTable(rows, context),
    });
    await list.begin();
    return [
        head("Devices", "Registered for push. The lag counts what their subscriptions have that they were not told of."),
        list.element,
    ];
}
