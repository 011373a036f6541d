// A workerd of our own: a config, a free port, a data directory; started, killed, started again.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

/** The folder of the package, above this file wherever it was compiled to. */
export const PACKAGE = above(import.meta.dirname);
/** How long workerd may take to answer for the first time. */
const START_MS = 30_000;

function above(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : above(dirname(folder));
}

/** The file of the binary, out of the platform's npm package. */
function binary(): string {
  return process.env.WORKERD ?? join(PACKAGE, `node_modules/@cloudflare/workerd-${process.platform}-${arch()}/bin/workerd`);
}

function arch(): string {
  return process.arch === "x64" ? "64" : process.arch;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") {
    throw new Error("no free port");
  }
  return address.port;
}

/** Modules as they lie on disk, each under the name by which it is imported. */
function modules(folder: string, prefix: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js") || file.endsWith(".wasm"))
    .map((file) => {
      const name = prefix + (file === "index.js" && prefix !== "" ? "durable-object" : file);
      const kind = file.endsWith(".wasm") ? "wasm" : "esModule";
      return `(name = "${name}", ${kind} = embed "${relative(join(PACKAGE, "dist-test"), join(folder, file))}")`;
    });
}

/** The package's other entry, under the name by which it is imported. */
const KINDS = `(name = "@dueline/durable-object/kinds", esModule = "export * from \\"../kinds/index.js\\";")`;

/** What was started and has not ended: it must not outlive the tests. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) {
    child.kill("SIGKILL");
  }
});

/** A config that lies in a file, its socket called `http` and its directory `disk`. */
export interface WorkerdFile {
  readonly file: string;
  /** Further words for workerd. */
  readonly words?: readonly string[];
}

/** What a test wants to run. */
export interface WorkerdOptions {
  /** The module of the worker, below its folder. */
  readonly entry: string;
  /** The folder of the worker's modules below the package; `dist-test/worker` without it. */
  readonly folder?: string;
  /** The classes of its objects. */
  readonly classes: readonly string[];
  /** The folder of another build of the package. */
  readonly dist?: string;
  /** Whether the module of the engine's suites is there. */
  readonly suite?: boolean;
  /** Whether objects stay in memory; without it they leave after 10 s without a request. */
  readonly preventEviction?: boolean;
  /** `2026-10-01` without it. */
  readonly compatibilityDate?: string;
}

function config(options: WorkerdOptions, port: number, data: string): string {
  const worker = modules(join(PACKAGE, options.folder ?? "dist-test/worker"), "");
  worker.sort((a, b) => Number(b.includes(`"${options.entry}"`)) - Number(a.includes(`"${options.entry}"`)));
  const suite = options.suite === true ? modules(join(PACKAGE, "dist-test/suite"), "@dueline/suite/") : [];
  const all = [...worker, ...modules(options.dist ?? join(PACKAGE, "dist"), "@dueline/"), KINDS, ...suite];
  const bindings = options.classes.map((name) => `(name = "${name}", durableObjectNamespace = "${name}")`);
  const prevent = options.preventEviction === true ? ", preventEviction = true" : "";
  const namespaces = options.classes.map(
    (name) => `(className = "${name}", uniqueKey = "${name}", enableSql = true${prevent})`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .main), (name = "disk", disk = (path = "${data}", writable = true)) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ],
);
const main :Workerd.Worker = (
  modules = [ ${all.join(",\n    ")} ],
  compatibilityDate = "${options.compatibilityDate ?? "2026-10-01"}",
  bindings = [ ${bindings.join(", ")} ],
  durableObjectNamespaces = [ ${namespaces.join(", ")} ],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}

/** One workerd with its data. */
export class Workerd {
  #options: WorkerdOptions | WorkerdFile;
  readonly data: string;
  #port = 0;
  #process: ChildProcess | undefined;
  /** What it wrote to its standard error. */
  log = "";

  private constructor(options: WorkerdOptions | WorkerdFile) {
    this.#options = options;
    this.data = mkdtempSync(join(tmpdir(), "dueline-workerd-"));
  }

  static async start(options: WorkerdOptions | WorkerdFile): Promise<Workerd> {
    const workerd = new Workerd(options);
    await workerd.start();
    return workerd;
  }

  /** What the next start runs in place of the worker so far. */
  deploy(entry: string): void {
    this.#options = { ...this.#options, entry } as WorkerdOptions;
  }

  /** Starts it over the data there is, with this beside the environment of the tests. */
  async start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#port = await freePort();
    const written = join(PACKAGE, "dist-test", `workerd-${process.pid}-${this.#port}.capnp`);
    const child = spawn(binary(), ["serve", ...this.#words(written)], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.log += text;
      });
    }
    const until = Date.now() + START_MS;
    for (;;) {
      if (child.exitCode !== null || Date.now() > until) {
        throw new Error(`workerd did not start:\n${this.log}`);
      }
      try {
        await fetch(`http://127.0.0.1:${this.#port}/`);
        break;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
    rmSync(written, { force: true });
  }

  #words(written: string): readonly string[] {
    const options = this.#options;
    if ("file" in options) {
      const { file, words = [] } = options;
      return [join(PACKAGE, file), "-s", `http=127.0.0.1:${this.#port}`, "-d", `disk=${this.data}`, ...words];
    }
    writeFileSync(written, config(options, this.#port, this.data));
    return [written];
  }

  /** Its process, while it runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Where it listens. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** As a crash does it: kill -9. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** Kills it and takes its data away. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.data, { recursive: true, force: true });
  }

  /** One object of a class. */
  object(className: string, name: string): ObjectClient {
    return new ObjectClient(() => `http://127.0.0.1:${this.#port}/${className}/${encodeURIComponent(name)}`);
  }
}

/** An error that an object answered with. */
export class Answered extends Error {
  constructor(
    readonly code: string | null,
    message: string,
  ) {
    super(message);
  }
}

/** Requests to one object. */
export class ObjectClient {
  constructor(readonly url: () => string) {}

  /** Calls an operation of the object. */
  async call<T = unknown>(op: string, ...args: unknown[]): Promise<T> {
    const response = await fetch(this.url(), {
      method: "POST",
      body: JSON.stringify({ op, args }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`${response.status}: ${text}`);
    }
    const answer = JSON.parse(text) as { value?: T; error?: { code: string | null; message: string } };
    if (answer.error !== undefined) {
      throw new Answered(answer.error.code, answer.error.message);
    }
    return answer.value as T;
  }
}

/** Asks until the answer is as wanted, or fails with the last answer. */
export async function until<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  withinMs = 20_000,
  everyMs = 20,
): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer)) {
      return answer;
    }
    if (Date.now() > end) {
      throw new Error(`still not as wanted: ${JSON.stringify(answer)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
