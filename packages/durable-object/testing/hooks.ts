// How Node loads the platform's own module, and WebAssembly as the platform does: as a compiled module.

interface Resolved {
  readonly url: string;
  readonly shortCircuit?: boolean;
}

interface Loaded {
  readonly format: string;
  readonly source?: unknown;
  readonly shortCircuit?: boolean;
}

export async function resolve(
  name: string,
  context: unknown,
  next: (name: string, context: unknown) => Promise<Resolved>,
): Promise<Resolved> {
  if (name === "cloudflare:workers") {
    return { url: new URL("./cloudflare-workers.js", import.meta.url).href, shortCircuit: true };
  }
  return next(name, context);
}

export async function load(
  url: string,
  context: unknown,
  next: (url: string, context: unknown) => Promise<Loaded>,
): Promise<Loaded> {
  if (!url.startsWith("file:") || !new URL(url).pathname.endsWith(".wasm")) {
    return next(url, context);
  }
  const source = `import { readFileSync } from "node:fs";
export default new WebAssembly.Module(readFileSync(new URL(${JSON.stringify(url)})));`;
  return { format: "module", source, shortCircuit: true };
}
