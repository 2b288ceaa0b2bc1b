// What is written to the store, as it is.

import { get } from "./api.js";
import { address, bytes, el, empty, grouped, head, replace, shownText, tag, time } from "./dom.js";

/** So many stay on the page; older ones go. */
const shownMax = 200;

const colors = { put: "good", deleted: "bad" };

export async function showLive(parameters, { signal, again }) {
    // A stream that is refused does not say why: who is not signed in any more is told here.
    await get("session", {}, signal);
    const list = el("ol", { class: "live", "aria-label": "Operations, the newest first" });
    const state = el("span", { class: "tag warn", id: "live-state", role: "status" }, "connecting");
    const count = el("span", { class: "quiet", id: "live-count" }, "0 operations");
    const filter = el("input", { type: "search", id: "live-filter", spellcheck: "false" });
    const place = el("div", { class: "card" }, empty("Nothing yet", "What is written from now on appears here."));
    let isPaused = false;
    let seen = 0;
    const pause = el("button", {
        type: "button", class: "plain", "aria-pressed": "false",
        onclick: () => {
            isPaused = !isPaused;
            pause.setAttribute("aria-pressed", String(isPaused));
            pause.textContent = isPaused ? "Go on" : "Pause";
        },
    }, "Pause");
    const add = (...parts) => {
        seen += 1;
        count.textContent = `${grouped(seen)} operations`;
        if (isPaused) return;
        if (!list.isConnected) replace(place, list);
        list.prepend(el("li", { class: "new" }, parts));
        while (list.children.length > shownMax) list.lastElementChild.remove();
    };
    const source = new EventSource("/console/api/stream");
    signal.addEventListener("abort", () => source.close());
    source.addEventListener("open", () => {
        state.textContent = "live";
        state.className = "tag good";
    });
    source.addEventListener("operation", (event) => {
        const data = JSON.parse(event.data);
        if (filter.value && !data.dataset.includes(filter.value)) return;
        const kind = data.isDeleted ? "deleted" : "put";
        add(time(data.time, { short: true }), tag(kind, colors[kind]),
            el("div", {}, el("a", { href: address("records", { dataset: data.dataset }) }, shownText(data.dataset))),
            el("div", {}, el("a", { href: address("record", { dataset: data.dataset, id: data.id }) }, bytes(data.key)),
                data.isDeleted ? null : [" = ", bytes(data.value)]));
    });
    const note = (text) => add(time(Date.now(), { short: true }), tag("note", "warn"), el("div", {}, text));
    source.addEventListener("deleted", (event) => note(`dataset ${JSON.parse(event.data).dataset} was deleted`));
    source.addEventListener("skipped", (event) => {
        const data = JSON.parse(event.data);
        note(`${data.operations ? grouped(data.operations) : "many"} operations of ${data.dataset} are not shown`);
    });
    source.addEventListener("lost", () => note("some operations came too fast to be shown"));
    source.onerror = () => {
        if (signal.aborted) return;
        state.textContent = "not connected";
        state.className = "tag bad";
        // The browser tries again by itself, unless the hub has refused.
        if (source.readyState === EventSource.CLOSED) setTimeout(() => !signal.aborted && again(), 3000);
    };
    return [
        head("Live", "Operations as they are applied to this hub, the newest first. Of what comes very fast the newest is shown.", state),
        el("div", { class: "bar" },
            el("label", { class: "grow", for: "live-filter" }, "Only datasets whose names hold", filter), pause, count),
        place,
    ];
}
