// What differs between two texts, line by line: the longest common subsequence, by dynamic
// programming (Wagner and Fischer, 1974), for texts that are short enough for its square.

const linesMax = 600;

/** Lines as `{ kind, line }`, where the kind is "added", "gone" or nothing; null if they are many. */
export function differences(before, after) {
    const [old, now] = [before.split("\n"), after.split("\n")];
    if (old.length > linesMax || now.length > linesMax) return null;
    const width = now.length + 1;
    const lengths = new Uint16Array((old.length + 1) * width);
    for (let i = old.length - 1; i >= 0; i -= 1) {
        for (let j = now.length - 1; j >= 0; j -= 1) {
            lengths[i * width + j] = old[i] === now[j] ? lengths[(i + 1) * width + j + 1] + 1
                : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
        }
    }
    const lines = [];
    let [i, j] = [0, 0];
    while (i < old.length || j < now.length) {
        if (i < old.length && j < now.length && old[i] === now[j]) {
            lines.push({ kind: "", line: now[j] });
            i += 1;
            j += 1;
        } else if (i < old.length && (j === now.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
            lines.push({ kind: "gone", line: old[i] });
            i += 1;
        } else {
            lines.push({ kind: "added", line: now[j] });
            j += 1;
        }
    }
    return lines;
}
