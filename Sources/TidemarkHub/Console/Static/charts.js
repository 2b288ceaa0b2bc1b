// How the hub fares: lines over the last hour, drawn from the samples that the hub keeps.

import { get } from "./api.js";
import { el, empty, grouped, head, replace, size, svg } from "./dom.js";

const [width, height] = [440, 170];
const [left, right, above, below] = [58, 10, 12, 24];

const number = (value) => (value >= 100 || value === 0 ? grouped(Math.round(value)) : value.toPrecision(2));
const bytesOf = (value) => size(Math.round(value));
const milliseconds = (value) => `${number(value)} ms`;

/** Of what each chart is drawn: one line, or two. */
const charts = [
    { title: "Requests a second", lines: [["requests", "answered"]], text: number },
    { title: "Latency of requests", lines: [["medianMilliseconds", "half within"], ["slowMilliseconds", "99 % within"]], text: milliseconds },
    { title: "Writes a second", lines: [["puts", "puts"], ["deletes", "deletes"]], text: number },
    { title: "Latency of the disk", lines: [["syncMilliseconds", "one sync"]], text: milliseconds },
    { title: "Compaction, bytes a second", lines: [["bytesMergedIn", "read"], ["bytesMergedOut", "written"]], text: bytesOf },
    { title: "Log, bytes a second", lines: [["loggedBytes", "logged"]], text: bytesOf },
    { title: "Segments", lines: [["segments", "segments"], ["runs", "runs"]], text: number },
    { title: "Bytes on disk", lines: [["segmentBytes", "sealed"], ["logBytes", "in logs"]], text: bytesOf },
];

/** The next 1, 2 or 5 times a power of ten. */
function ceiling(value) {
    if (value <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function draw(chart, samples) {
    const most = ceiling(Math.max(...samples.flatMap((sample) => chart.lines.map(([name]) => sample[name]))));
    const [first, last] = [samples[0].time, samples[samples.length - 1].time];
    const span = Math.max(1, last - first);
    const x = (time) => left + ((time - first) / span) * (width - left - right);
    const y = (value) => height - below - (value / most) * (height - above - below);
    const path = (name) => samples.map(
        (sample, index) => `${index ? "L" : "M"}${x(sample.time).toFixed(1)} ${y(sample[name]).toFixed(1)}`).join("");
    const clock = (time) => new Date(time).toTimeString().slice(0, 5);
    const newest = samples[samples.length - 1];
    const summary = chart.lines.map(([name, label]) => `${label} ${chart.text(newest[name])}`).join(", ");
    const base = height - below;
    return el("section", { class: "card" },
        el("h2", {}, chart.title),
        svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.title}: ${summary}` },
            [0, .5, 1].map((part) => [
                svg("line", { class: "axis", x1: left, x2: width - right, y1: y(most * part), y2: y(most * part) }),
                svg("text", { x: left - 6, y: y(most * part) + 4, "text-anchor": "end" }, chart.text(most * part)),
            ]),
            svg("text", { x: left, y: height - 6 }, clock(first)),
            svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, clock(last)),
            svg("path", { class: "fill", d: `${path(chart.lines[0][0])}L${x(last).toFixed(1)} ${base}L${left} ${base}Z` }),
            chart.lines.map(([name], index) => svg("path", { class: index ? "second" : "first", d: path(name) }))),
        el("p", { class: "small quiet" }, chart.lines.map(([name, label], index) => [
            el("span", { class: index ? "key second" : "key" }), `${label} `,
            el("strong", {}, chart.text(newest[name])), "   "])));
}

export async function showCharts(parameters, { signal }) {
    let samples = [];
    const place = el("div", { class: "grid wide" });
    const status = el("span", { class: "quiet", role: "status" });
    const load = async () => {
        const since = samples.length ? samples[samples.length - 1].time : 0;
        const answer = await get("charts", { since }, signal);
        samples = samples.concat(answer.samples).slice(-720);
        status.textContent = `a sample each ${answer.periodSeconds} s, ${grouped(samples.length)} of them`;
        replace(place, samples.length > 1 ? charts.map((chart) => draw(chart, samples))
            : el("div", { class: "card" }, empty("Not enough samples yet", "The first lines are there some seconds after the hub has started.")));
        return answer.periodSeconds;
    };
    const period = await load();
    const timer = setInterval(() => load().catch((error) => {
        if (!signal.aborted) status.textContent = error.message;
    }), period * 1000);
    signal.addEventListener("abort", () => clearInterval(timer));
    return [head("Charts", "The last hour at most; nothing of it is on disk.", status), place];
}
