// Talks to the hub. The session is in a cookie that no script sees; the token that each change must
// carry is in memory alone, and is asked for anew when the page is loaded.

let token = "";

/** What the hub refuses, in its words. */
export class Refused extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }

    get isSignedOut() {
        return this.status === 401;
    }
}

async function ask(path, options = {}) {
    let response;
    try {
        response = await fetch(`/console/api/${path}`, {
            credentials: "same-origin", redirect: "error", cache: "no-store", ...options,
        });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refused(0, "unreachable", "The hub cannot be reached. Is it running?");
    }
    let body = {};
    try {
        body = await response.json();
    } catch {
        if (response.ok) throw new Refused(response.status, "unreadable", "The hub's answer cannot be read.");
    }
    if (response.ok) return body;
    throw new Refused(
        response.status, body.error?.code ?? "unknown",
        body.error?.message ?? `The hub answered with status ${response.status}.`);
}

function query(parameters) {
    const pairs = Object.entries(parameters)
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
    return pairs.length ? `?${pairs.join("&")}` : "";
}

export function get(operation, parameters = {}, signal = undefined) {
    return ask(operation + query(parameters), { signal });
}

function send(operation, method, body) {
    return ask(operation, {
        method, headers: { "content-type": "application/json", "x-tidemark-token": token },
        body: body === undefined ? undefined : JSON.stringify(body),
    });
}

/** Changes something; to be asked for only when somebody has confirmed it. */
export function change(operation, body) {
    return send(operation, "POST", body);
}

/** The session of this browser; throws if nobody is signed in. */
export async function resume() {
    token = (await get("session")).token;
}

export async function signIn(secret) {
    token = (await send("session", "POST", { token: secret })).token;
}

export async function signOut() {
    await send("session", "DELETE");
    token = "";
}
