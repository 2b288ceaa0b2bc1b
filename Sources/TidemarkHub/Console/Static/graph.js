// The versions of a record and their ancestry: a column of circles beside a list, each joined with
// those that it descends from.

import { bytes, el, grouped, replica, svg, tag, time } from "./dom.js";

const rowHeight = 76;
const laneWidth = 22;
const lanesMax = 6;

/** The lane of each version: its own line of descent, as far as there is room. */
function lanesOf(versions) {
    const places = new Map(versions.map((version, index) => [version.dot, index]));
    const lanes = new Array(versions.length).fill(-1);
    // What each lane leads to next, so that it is free when that has been drawn.
    const ends = [];
    versions.forEach((version, index) => {
        let lane = ends.findIndex((end) => end === index);
        if (lane < 0) lane = ends.findIndex((end) => end === undefined || end < index);
        if (lane < 0) lane = ends.length;
        lanes[index] = Math.min(lane, lanesMax - 1);
        // Others that lead here end here.
        ends.forEach((end, other) => {
            if (end === index) ends[other] = undefined;
        });
        const parents = version.parents.map((dot) => places.get(dot)).filter((place) => place > index);
        ends[lane] = parents[0];
        for (const parent of parents.slice(1)) {
            if (!ends.includes(parent)) {
                const free = ends.findIndex((end) => end === undefined);
                ends[free < 0 ? ends.length : free] = parent;
            }
        }
    });
    return { lanes, places };
}

export function drawHistory(history, current) {
    const { versions } = history;
    const { lanes, places } = lanesOf(versions);
    const width = laneWidth * (Math.max(...lanes) + 1) + 12;
    const height = rowHeight * versions.length;
    const x = (index) => 12 + lanes[index] * laneWidth;
    const y = (index) => rowHeight * index + 24;
    const edges = [];
    versions.forEach((version, index) => {
        for (const dot of version.parents) {
            const parent = places.get(dot);
            if (parent === undefined) continue;
            const [fromX, fromY, toX, toY] = [x(index), y(index), x(parent), y(parent)];
            const bend = fromX === toX && Math.abs(parent - index) > 1 ? fromX + 9 : toX;
            edges.push(svg("path", {
                class: "edge", d: `M${fromX} ${fromY} C${bend} ${fromY + 40} ${bend} ${toY - 40} ${toX} ${toY}`,
            }));
        }
    });
    const nodes = versions.map((version, index) => {
        const kinds = ["node"];
        if (version.dot === current) kinds.push("now");
        if (version.waitsFor) kinds.push("waiting");
        if (version.isDeleted) kinds.push("gone");
        return svg("circle", { class: kinds.join(" "), cx: x(index), cy: y(index), r: 6 });
    });
    const picture = svg("svg", {
        width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
        "aria-label": `Ancestry of ${versions.length} versions; the list beside it says the same`,
    }, edges, nodes);
    const list = el("ol", { "aria-label": "Versions, the newest first" }, versions.map((version) => el("li", {},
        el("div", {}, time(version.time), " ", replica(version.replica), ` write ${grouped(version.counter)} `,
            version.author ? `of ${version.author} ` : "",
            version.dot === current ? tag("now", "good") : null,
            version.waitsFor ? tag("waits to be settled", "warn") : null),
        el("div", {}, version.isDeleted ? tag("deleted", "bad") : bytes(version.value)))));
    return el("div", {}, el("div", { class: "history" }, picture, list),
        history.isCut ? el("p", { class: "quiet" }, "There are older versions.") : null);
}
