// The frame: who is signed in, which view is shown, and what is told beside it.

import { Refused, resume, signIn, signOut } from "./api.js";
import { el, empty, head, replace } from "./dom.js";
import { showAudit, showOverview, showSettings } from "./hub.js";
import { showDatasets, showIdentities, showIdentity } from "./lists.js";
import { showRecord, showRecords } from "./records.js";
import { showLive } from "./live.js";
import { showDevices, showReplicas } from "./replicas.js";
import { showConflict, showConflicts } from "./conflicts.js";
import { showCharts } from "./charts.js";

/** Views by their path; those with a title stand in the menu. */
const views = {
    overview: { title: "Overview", show: showOverview },
    identities: { title: "Identities", show: showIdentities },
    identity: { show: showIdentity, within: "identities" },
    datasets: { title: "Datasets", show: showDatasets },
    records: { show: showRecords, within: "datasets" },
    record: { show: showRecord, within: "datasets" },
    live: { title: "Live", show: showLive },
    replicas: { title: "Replicas", show: showReplicas },
    devices: { title: "Devices", show: showDevices },
    conflicts: { title: "Conflicts", show: showConflicts },
    conflict: { show: showConflict, within: "conflicts" },
    charts: { title: "Charts", show: showCharts },
    settings: { title: "Settings", show: showSettings },
    audit: { title: "Audit", show: showAudit },
};

const main = document.getElementById("main");
const top = document.getElementById("top");
const menu = document.getElementById("menu");
const nav = document.getElementById("views");

/** Ends what the view that is shown has under way. */
let current = new AbortController();

/** Tells something beside the view, for a while. */
function notify(text, isBad = false) {
    const notice = el("div", { class: isBad ? "notice bad" : "notice" }, text);
    document.getElementById("notices").append(notice);
    setTimeout(() => notice.remove(), 6000);
}

/** Asks whether to do what changes something; true if so. */
function confirmed(title, about, action, isDangerous = true) {
    return new Promise((resolve) => {
        const dialog = el("dialog", { "aria-labelledby": "dialog-title" },
            el("form", { method: "dialog" },
                el("h2", { id: "dialog-title" }, title), el("div", {}, about),
                el("div", { class: "actions" },
                    el("button", { value: "yes", class: isDangerous ? "danger" : undefined, id: "confirm" }, action),
                    el("button", { value: "no", class: "plain", autofocus: true }, "Cancel"))));
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

/** Where the address points: `#/records?dataset=notes`. */
function route() {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const parameters = {};
    for (const pair of query.split("&").filter(Boolean)) {
        const [name, value = ""] = pair.split("=", 2);
        try {
            parameters[decodeURIComponent(name)] = decodeURIComponent(value);
        } catch {
            // An address that nobody here has written: what cannot be read is left out.
        }
    }
    return { name: path || "overview", parameters };
}

async function show() {
    current.abort();
    current = new AbortController();
    const { signal } = current;
    const { name, parameters } = route();
    const view = Object.hasOwn(views, name) ? views[name] : null;
    for (const link of nav.children) {
        if (link.dataset.view === (view?.within ?? name)) {
            link.setAttribute("aria-current", "page");
        } else {
            link.removeAttribute("aria-current");
        }
    }
    closeMenu();
    if (!view) {
        replace(main, head("Nothing is here", ""), empty("There is no such view", "Choose one above."));
        return;
    }
    replace(main, el("p", { class: "quiet", role: "status" }, "Loading…"));
    try {
        const parts = await view.show(parameters, { signal, notify, confirmed, again: show, main });
        if (signal.aborted) return;
        replace(main, parts);
        main.dataset.view = name;
        scrollTo(0, 0);
    } catch (error) {
        if (!signal.aborted) tell(error);
    }
}

/** A failure in place of the view. */
function tell(error) {
    if (error instanceof Refused && error.isSignedOut) {
        showSignIn();
        return;
    }
    const text = error instanceof Refused ? error.message : `The page failed: ${error.message}`;
    replace(main, el("div", { class: "card problem", role: "alert" },
        el("h2", {}, "That did not work"), el("p", {}, text),
        el("button", { type: "button", onclick: show }, "Try again")));
}

function showSignIn() {
    top.hidden = true;
    document.title = "Sign in – Tidemark console";
    main.dataset.view = "sign-in";
    const secret = el("input", {
        type: "password", id: "token", autocomplete: "current-password", required: true, spellcheck: "false",
    });
    const problem = el("p", { class: "tag bad", role: "alert", hidden: true, id: "sign-in-problem" });
    const form = el("form", {
        onsubmit: async (event) => {
            event.preventDefault();
            problem.hidden = true;
            try {
                await signIn(secret.value);
                begin();
            } catch (error) {
                problem.hidden = false;
                problem.textContent = error.status === 403
                    ? "This token does not open the console." : error.message;
                secret.select();
            }
        },
    },
    el("h1", {}, "Tidemark console"),
    el("p", { class: "quiet" }, "Sign in with the hub's own token, as adminTokenFile or --token-file has it."),
    el("label", { for: "token" }, "Token", secret), problem,
    el("button", { type: "submit" }, "Sign in"));
    replace(main, el("div", { class: "card sign-in" }, form));
    secret.focus();
}

function begin() {
    top.hidden = false;
    main.focus();
    show();
}

function closeMenu() {
    nav.classList.remove("open");
    menu.setAttribute("aria-expanded", "false");
}

/** Arrow keys walk through the menu. */
function walk(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const links = [...nav.children];
    const index = links.indexOf(event.target);
    if (!step || index < 0) return;
    event.preventDefault();
    links[(index + step + links.length) % links.length].focus();
}

for (const [name, view] of Object.entries(views)) {
    if (view.title) nav.append(el("a", { href: `#/${name}`, "data-view": name }, view.title));
}
nav.addEventListener("keydown", walk);
menu.addEventListener("click", () => {
    menu.setAttribute("aria-expanded", String(nav.classList.toggle("open")));
});
document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
document.getElementById("sign-out").addEventListener("click", async () => {
    try {
        await signOut();
    } catch (error) {
        if (!error.isSignedOut) {
            notify(error.message, true);
            return;
        }
    }
    current.abort();
    showSignIn();
});
addEventListener("hashchange", () => {
    if (main.dataset.view !== "sign-in") show();
});

try {
    await resume();
    begin();
} catch (error) {
    tell(error);
}
