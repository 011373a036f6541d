// Figures of a test, and randomness that can be had again.

/** The value below which this part of the values lies. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** p50, p99 and the largest, as a line says them. */
export function spread(values: readonly number[], unit = "ms"): string {
  return `p50 ${percentile(values, 0.5)} ${unit}, p99 ${percentile(values, 0.99)} ${unit}, max ${percentile(values, 1)} ${unit}`;
}

/** The seed of this run: `DUELINE_SEED`, or drawn. A test says it. */
export function drawSeed(): number {
  const given = process.env.DUELINE_SEED;
  return given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
