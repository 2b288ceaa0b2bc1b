// Builds what is on the page. Everything that comes from the hub becomes text by way of text nodes:
// there is no place in the console that takes a string for markup.

const svgNames = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick`) and children: elements, texts, or nothing. */
export function el(name, attributes = {}, ...children) {
    return fill(document.createElement(name), attributes, children);
}

/** The same for drawings. */
export function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS(svgNames, name), attributes, children);
}

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
}

export function replace(place, ...children) {
    place.replaceChildren(...children.flat(Infinity).filter((child) => child));
}

// Characters that are not seen, or move others about: all controls, and the marks of direction.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u;
const marksMax = 2000;

/** A text with each hidden character in the open, as nodes. */
export function shownText(text) {
    if (!hidden.test(text)) return [document.createTextNode(text)];
    const nodes = [];
    let plain = "";
    let marks = 0;
    for (const character of text) {
        if (marks < marksMax && hidden.test(character)) {
            if (plain) nodes.push(document.createTextNode(plain));
            plain = "";
            marks += 1;
            const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
            nodes.push(el("span", { class: "control" }, `U+${code}`));
        } else {
            plain += character;
        }
    }
    if (plain) nodes.push(document.createTextNode(plain));
    return nodes;
}

/** Groups of two hexadecimal digits. */
export function hexText(digits) {
    return digits.replace(/(..)(?=.)/g, "$1 ");
}

/** Bytes on a line of a list, as the API shows them. */
export function bytes(shown, { block = false } = {}) {
    if (!shown) return el("span", { class: "quiet" }, "nothing");
    const isText = shown.text !== undefined;
    const content = isText ? shownText(shown.text) : [hexText(shown.hex)];
    const place = el(block ? "pre" : "span", {
        class: block ? "bytes" : "bytes line", dir: isText ? "auto" : "ltr",
        tabindex: block ? "0" : undefined,
    }, content);
    if (isText && shown.text === "") place.append(el("span", { class: "quiet" }, "empty"));
    const notes = [];
    if (!isText) notes.push(el("span", { class: "tag warn" }, "binary"));
    if (shown.to !== undefined) {
        const part = shown.from > 0
            ? `bytes ${grouped(shown.from)} to ${grouped(shown.to)} of ${size(shown.bytes)}`
            : `the first ${size(shown.to)} of ${size(shown.bytes)}`;
        notes.push(el("span", { class: "quiet small" }, part));
    }
    return notes.length ? el(block ? "div" : "span", {}, place, " ", notes.flatMap((note) => [note, " "])) : place;
}

// MARK: Numbers and times

export function grouped(number) {
    return Number(number).toLocaleString("en-US");
}

export function size(count) {
    if (count < 1024) return `${grouped(count)} B`;
    const units = ["KiB", "MiB", "GiB", "TiB"];
    let value = count / 1024;
    let unit = 0;
    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A time by the browser's clock and zone, with all of it at hand. */
export function time(milliseconds, { short = false } = {}) {
    if (!milliseconds) return el("span", { class: "quiet" }, "never");
    const date = new Date(milliseconds);
    if (Number.isNaN(date.getTime())) return el("span", {}, String(milliseconds));
    const pad = (number, width = 2) => String(number).padStart(width, "0");
    const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
    const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
    const text = short ? clock : `${day} ${clock}`;
    return el("time", { datetime: date.toISOString(), title: date.toISOString() }, text);
}

/** The first digits of a replica's id. */
export function replica(id) {
    return el("span", { class: "bytes", title: id }, String(id).slice(0, 8));
}

export function tag(text, kind = "") {
    return el("span", { class: `tag ${kind}`.trim() }, text);
}

// MARK: Parts of views

export function head(title, about, ...more) {
    document.title = `${title} – Tidemark console`;
    return el("div", { class: "head" }, el("h1", {}, title), ...more, about ? el("p", {}, about) : null);
}

export function empty(title, about) {
    return el("div", { class: "empty" }, el("strong", {}, title), about);
}

export function facts(rows) {
    return el("dl", { class: "facts" }, rows.filter((row) => row).map(
        ([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A link whose parts are encoded. */
export function link(path, parameters, ...children) {
    return el("a", { href: address(path, parameters) }, ...children);
}

export function address(path, parameters = {}) {
    const query = Object.entries(parameters)
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
    return `#/${path}${query ? `?${query}` : ""}`;
}

/**
 * A table, whose rows are walked with the arrow keys, Home and End, and opened with Enter.
 *
 * Columns are `{ name, cell, number, isTime, sort, order }`. `sort` gives what the rows that are
 * shown are sorted by. Where the hub sorts, `sorting` is `{ order, choose }`: the order in force,
 * and what asks for another one; `order` is the column's there, and sorts those too that are not
 * shown yet.
 */
export function table(label, columns, rows, open, sorting = null) {
    const body = el("tbody", {});
    let order = { column: null, isDescending: false };
    const draw = () => {
        const sorted = [...rows];
        if (order.column) {
            const by = order.column.sort;
            sorted.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0));
            if (order.isDescending) sorted.reverse();
        }
        replace(body, sorted.map((row, index) => line(columns, row, open, index === 0)));
    };
    const heads = columns.map((column) => {
        const cell = el("th", { scope: "col", class: column.number ? "number" : undefined });
        if (sorting && column.order) {
            cell.append(sorter(column, cell, sorting));
        } else if (column.sort) {
            cell.append(el("button", {
                type: "button", title: "Sorts the rows that are shown",
                onclick: () => {
                    const isSame = order.column === column;
                    order = { column, isDescending: isSame && !order.isDescending };
                    for (const other of heads) other.removeAttribute("aria-sort");
                    cell.setAttribute("aria-sort", order.isDescending ? "descending" : "ascending");
                    draw();
                },
            }, column.name));
        } else {
            cell.append(column.name);
        }
        return cell;
    });
    draw();
    body.addEventListener("keydown", walk);
    return el("div", { class: "scroll" }, el("table", { class: "rows", "aria-label": label },
        el("thead", {}, el("tr", {}, heads)), body));
}

/** Numbers and times begin with the greatest, which are mostly looked for. */
function sorter(column, cell, { order, choose }) {
    const [rising, falling] = [column.order, `-${column.order}`];
    if (order === rising) cell.setAttribute("aria-sort", "ascending");
    if (order === falling) cell.setAttribute("aria-sort", "descending");
    const first = column.number || column.isTime ? falling : rising;
    const second = first === rising ? falling : rising;
    return el("button", {
        type: "button", title: "Sorts all of them, also those that are not shown yet",
        onclick: () => choose(order === first ? second : first),
    }, column.name);
}

function line(columns, row, open, isFirst) {
    return el("tr", {
        tabindex: isFirst ? "0" : "-1",
        onkeydown: (event) => {
            if (event.key !== "Enter" || event.target !== event.currentTarget || !open) return;
            event.preventDefault();
            location.hash = open(row);
        },
    }, columns.map((column) => el("td", {
        "data-name": column.name,
        class: column.number ? "number" : column.isTime ? "time" : undefined,
    }, el("div", {}, column.cell(row)))));
}

function walk(event) {
    const row = event.target.closest("tr");
    const steps = {
        ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling,
        Home: row?.parentElement.firstElementChild, End: row?.parentElement.lastElementChild,
    };
    if (!row || event.target !== row || !(event.key in steps)) return;
    event.preventDefault();
    const next = steps[event.key];
    if (!next) return;
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
}
