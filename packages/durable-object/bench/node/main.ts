// Side by side in one workerd: the package, and an alarm loop written by hand that keeps the same promises.
// Rounds are interleaved, and the ratio is that of the medians, above 1 if the package is the better. The time
// of the processor says more than rates where disk or machine are shared. Nothing here fails for being slow.
//   node dist-bench/bench/node/main.js [--tiny] [--side CLASS] [--only WORD]
import { readFileSync } from "node:fs";
import { percentile } from "../../test/node/figures.js";
import { Workerd } from "../../test/node/workerd.js";
import { cold } from "./cold.js";
import { FULL, MEASUREMENTS, TINY, type Measure } from "./measures.js";

const BY_HAND = "ByHand";
const SIDES = ["ByHandAtLength", "WithDueline", "WithGroups", "WithDefaults"];

async function main(words: readonly string[]): Promise<void> {
  const size = words.includes("--tiny") ? TINY : FULL;
  const asked = words[words.indexOf("--side") + 1];
  const sides = words.includes("--side") && asked !== undefined ? [asked] : SIDES;
  // What a measurement is called has this in it.
  const only = words.includes("--only") ? (words[words.indexOf("--only") + 1] ?? "") : "";
  if (only === "") {
    await cold(size.rounds);
  }
  const workerd = await Workerd.start({
    folder: "dist-bench/worker",
    entry: "main.js",
    classes: [BY_HAND, ...SIDES],
    preventEviction: true,
  });
  try {
    await compare(workerd, [BY_HAND, ...sides], size, only);
  } finally {
    await workerd.stop();
  }
}

async function compare(workerd: Workerd, sides: readonly string[], size: typeof FULL, only: string): Promise<void> {
  for (const { measures, run } of MEASUREMENTS.filter(({ measures }) => measures.some(({ name }) => name.includes(only)))) {
    const figures = new Map(sides.map((side) => [side, measures.map(() => [] as number[])]));
    // The first round warms both sides up and is left out.
    for (let round = size === TINY ? 1 : 0; round <= size.rounds; round += 1) {
      // Each side comes first in some rounds.
      for (const place of sides.keys()) {
        const side = sides[(place + round) % sides.length] ?? BY_HAND;
        const found = await run(workerd.object(side, `${measures[0]?.name} ${round}`), size, () => processorMs(workerd));
        if (round > 0) {
          found.forEach((figure, index) => figures.get(side)?.[index]?.push(figure));
        }
      }
    }
    measures.forEach((measure, index) => {
      console.log(measure.name);
      const hand = median(figures.get(BY_HAND)?.[index] ?? []);
      for (const side of sides) {
        console.log(line(side, measure, figures.get(side)?.[index] ?? [], hand));
      }
    });
  }
}

function line(side: string, measure: Measure, figures: readonly number[], hand: number): string {
  const [middle, least, most] = [median(figures), Math.min(...figures), Math.max(...figures)].map(Math.round);
  const better = measure.isRate ? median(figures) / hand : hand / median(figures);
  const ratio = side === BY_HAND || !measure.isCompared ? "" : `  ratio ${better.toFixed(2)}`;
  return `  ${side.padEnd(15)} ${String(middle).padStart(7)} ${measure.unit}  (${least} to ${most})${ratio}`;
}

/** What the process of workerd took so far; 0 where the system does not say. */
function processorMs(workerd: Workerd): number {
  try {
    const words = readFileSync(`/proc/${workerd.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    // Behind the name: user and system time, in hundredths of a second.
    return (Number(words[11]) + Number(words[12])) * 10;
  } catch {
    return 0;
  }
}

function median(figures: readonly number[]): number {
  return percentile(figures, 0.5);
}

await main(process.argv.slice(2));
