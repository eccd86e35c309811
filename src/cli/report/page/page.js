/* SPDX-License-Identifier: Apache-2.0 */
/* Draw the charts of the document in #report, whose keys report_page.h lists. null is not known, and nothing is drawn
 * for it. The tables of the page are complete without this; report_body.c writes them, and charts take their words. */
(function () {
    "use strict";
    const doc = JSON.parse(document.getElementById("report").textContent);
    const run = doc.run || {};
    let charts = [];

    const list = (value) => Array.isArray(value) ? value.filter((one) => one !== null && typeof one === "object") : [];
    const known = (value) => typeof value === "number" && Number.isFinite(value);
    const percent = (value) => known(value) ? 100 * value : null;
    const count = (value) => value.toLocaleString("en", {maximumFractionDigits: value < 100 ? 1 : 0});

    /* The rows of the table that the selector finds, as lists of texts; [0]: its heads. */
    function cells(selector) {
        const table = document.querySelector(selector);
        return table ? Array.from(table.rows, (row) => Array.from(row.cells, (cell) => cell.textContent)) : [[]];
    }

    function colour(name) {
        return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    }

    function axis(title, more) {
        return Object.assign({
            title: {display: title !== "", text: title, color: colour("faint")},
            ticks: {color: colour("faint"), maxRotation: 0, autoSkipPadding: 12},
            grid: {color: colour("line"), drawBorder: false},
        }, more);
    }

    /* The axis of horizontal bars: every one has its name. */
    function rows(more) {
        return axis("", Object.assign({grid: {display: false}, ticks: {color: colour("faint"), autoSkip: false}}, more));
    }

    /* Make a chart of the canvas, where the page has it. */
    function draw(id, type, data, scales, options) {
        const canvas = document.getElementById(id);
        if (!canvas)
            return;
        const given = options || {};
        charts.push(new Chart(canvas, {type, data, options: {
            animation: false,
            maintainAspectRatio: false,
            indexAxis: given.indexAxis || "x",
            interaction: {mode: given.indexAxis === "y" ? "y" : "nearest", axis: given.indexAxis || "x", intersect: false},
            scales,
            plugins: {
                legend: {display: Boolean(given.legend), labels: {color: colour("text"), boxWidth: 14}},
                tooltip: {callbacks: {label: given.label || ((item) => item.dataset.label + ": " + item.formattedValue)}},
            },
        }}));
    }

    /* Stripes of a colour, for what was not measured. */
    function striped(name) {
        const tile = document.createElement("canvas");
        tile.width = tile.height = 8;
        const pen = tile.getContext("2d");
        pen.fillStyle = colour("card");
        pen.fillRect(0, 0, 8, 8);
        pen.strokeStyle = colour(name);
        pen.lineWidth = 2.5;
        pen.beginPath();
        for (const shift of [-8, 0, 8]) {
            pen.moveTo(shift - 1, 9);
            pen.lineTo(shift + 9, -1);
        }
        pen.stroke();
        return pen.createPattern(tile, "repeat");
    }

    /* Long names are cut into lines, so that a phone has room for bars. */
    function lines(text) {
        const found = [""];
        for (const word of text.split(" ")) {
            if (found[found.length - 1].length + word.length > 17)
                found.push("");
            found[found.length - 1] += (found[found.length - 1] ? " " : "") + word;
        }
        return found.filter((line) => line !== "");
    }

    // ---- over time ---------------------------------------------------------------------------------------------

    const SHADES = ["blue", "orange", "green", "purple", "gray"];
    const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

    /* The radius of a point in a long line: one that has no neighbour would not be seen. */
    function alone(context) {
        const data = context.dataset.data, i = context.dataIndex;
        return [i - 1, i + 1].some((near) => data[near] && data[near].y !== null) ? 0 : 1.5;
    }

    function line(label, points, i) {
        const shade = colour(SHADES[i % SHADES.length]);
        return {label, data: points, borderColor: shade, backgroundColor: shade, borderWidth: 1.8,
                borderDash: DASHES[Math.floor(i / SHADES.length) % DASHES.length],
                pointRadius: points.length <= 30 ? 2.5 : alone, pointHitRadius: 8, spanGaps: false, clip: 4};
    }

    /* Points in the middle of their stretches of time. */
    function points(one, key, change) {
        return one.begin.map((begin, i) => ({x: begin + one.seconds[i] / 2, y: change(one[key][i])}));
    }

    /* Return a step, 1, 2 or 5 times a power of 10, that divides the length into 5 to 12 parts. */
    function step(length) {
        const power = 10 ** Math.floor(Math.log10(length / 5 || 1));
        return power * [5, 2, 1].find((times) => length >= 5 * times * power || times === 1);
    }

    function lengthOf(series) {
        let end = 0;
        for (const one of series)
            one.begin.forEach((begin, i) => { end = Math.max(end, begin + one.seconds[i]); });
        return end;
    }

    function drawTime() {
        const series = list(doc.series), end = lengthOf(series);
        const many = series.length > 1;
        const [unit, divisor] = end > 7200 ? ["h", 3600] : end > 300 ? ["min", 60] : ["s", 1];
        const x = axis("time, " + unit, {type: "linear", min: 0, max: end,
                                         ticks: {color: colour("faint"), maxRotation: 0, autoSkipPadding: 16,
                                                 callback: (value) => Number((value / divisor).toPrecision(3))},
                                         afterBuildTicks: (scale) => {
                                             // Chart.js would divide the whole length evenly: 20.8, 41.7, ...
                                             const one = step(end / divisor) * divisor;
                                             scale.ticks = [];
                                             for (let i = 0; i * one <= end; i++)
                                                 scale.ticks.push({value: i * one});
                                         }});
        if (series.length > 8)
            document.getElementById("over-time").classList.add("many");
        /* One chart of a figure, with a line for each rank. Ranks have the same colours in all, so one legend is enough. */
        const chart = (id, key, unit, change, y, legend) => {
            const datasets = series.map((one, i) => [one, i]).filter(([one]) => Array.isArray(one[key]))
                .map(([one, i]) => line(many ? one.label || "?" : unit, points(one, key, change), i));
            draw(id, "line", {datasets}, {x, y: axis(unit, y)},
                 {legend, label: (item) => (many ? item.dataset.label + ": " : "") + count(item.parsed.y) + " " + unit});
        };
        const share = {min: 0, max: 100, ticks: {color: colour("faint"), stepSize: 25}};
        chart("chart-throughput", "samples_per_second", "samples/s", (value) => known(value) ? value : null,
              {beginAtZero: true, grace: "5%"}, many);
        chart("chart-waiting", "waiting", "%", percent, share, false);
        chart("chart-gpu", "gpu_utilisation", "%", percent, share, false);
    }

    // ---- bars --------------------------------------------------------------------------------------------------

    function drawStages() {
        const stages = run.stages || {};
        const names = cells("#stages table").slice(1).map((row) => row[0]);
        const share = (name, key) => {
            const one = stages[name], whole = one.busy_ns + one.starved_ns + one.blocked_ns;
            return known(whole) && whole > 0 ? 100 * one[key] / whole : null;
        };
        const datasets = [["busy_ns", "busy", "blue"], ["starved_ns", "starved", "orange"], ["blocked_ns", "blocked", "gray"]]
            .map(([key, label, shade]) => ({label, backgroundColor: colour(shade), data: names.map((name) => share(name, key))}));
        draw("chart-stages", "bar", {labels: names, datasets},
             {x: axis("% of its time", {stacked: true, min: 0, max: 100}), y: rows({stacked: true})},
             {indexAxis: "y", legend: true, label: (item) => item.dataset.label + ": " + count(item.parsed.x) + " %"});
    }

    function drawWaits() {
        const words = cells("#waits details table").slice(1);
        const buckets = list(doc.wait_buckets);
        draw("chart-waits", "bar",
             {labels: buckets.map((one, i) => known(one.below_ns) ? "< " + words[i][1] : "\u2265 " + words[i][0]),
              datasets: [{label: "batches", backgroundColor: colour("blue"), data: buckets.map((one) => one.n),
                          categoryPercentage: 1, barPercentage: .94, minBarLength: 2}]},
             {x: axis("time of a wait", {grid: {display: false}}), y: axis("batches", {beginAtZero: true})},
             {label: (item) => count(item.parsed.y) + " batches"});
        /* The table's first row is the wait for a batch: what, times, and a time for each share. */
        const wait = (doc.times || {}).wait || {}, [heads, times] = cells("#waits table");
        draw("chart-quantiles", "bar",
             {labels: heads.slice(2).map((share) => share + " within"),
              datasets: [{label: "wait", backgroundColor: colour("blue"), minBarLength: 2,
                          data: ["p50_ns", "p95_ns", "p99_ns", "max_ns"].map((key) => known(wait[key]) ? wait[key] / 1e6 : null)}]},
             {x: axis("ms", {beginAtZero: true}), y: rows()},
             {indexAxis: "y", label: (item) => times[2 + item.dataIndex]});
    }

    function drawCeilings() {
        const values = ["storage", "memory", "loader", "copy"].map((key) => percent((run.ratios || {})[key])).filter(known);
        draw("chart-ceilings", "bar",
             {labels: cells("#ceilings table").slice(1).map((row) => lines(row[0])),
              datasets: [{label: "reached", backgroundColor: colour("green"), data: values, minBarLength: 2, maxBarThickness: 34}]},
             {x: axis("% of what was measured alone", {min: 0, suggestedMax: 100}), y: rows()},
             {indexAxis: "y", label: (item) => count(item.parsed.x) + " % reached"});
    }

    function drawForecast() {
        const forecast = run.forecast || {}, cases = list(forecast.cases), words = cells("#forecast table").slice(1);
        const stripes = striped("purple");
        const values = [forecast.measured, ...cases.map((one) => one.samples_per_second)].map((value) => known(value) ? value : null);
        draw("chart-forecast", "bar",
             {labels: words.map(([change, , kind], i) => lines(i === 0 ? change + ", " + kind : change)),
              datasets: [{label: "samples/s", data: values, maxBarThickness: 30, borderWidth: 1.5,
                          borderColor: [colour("blue"), ...cases.map(() => colour("purple"))],
                          backgroundColor: [colour("blue"), ...cases.map(() => stripes)]}]},
             {x: axis("samples/s", {beginAtZero: true}), y: rows()},
             {indexAxis: "y", label: (item) => {
                 const [, rate, kind, limit] = words[item.dataIndex];
                 return rate + " samples/s, " + kind + ", limit: " + limit;
             }});
    }

    function drawAll() {
        charts.forEach((chart) => chart.destroy());
        charts = [];
        Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
        drawTime();
        drawStages();
        drawWaits();
        drawCeilings();
        drawForecast();
    }

    document.documentElement.classList.add("js");
    drawAll();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
