// The conformance suite of the store contract, a case per request.
import { __wbg_reset_state, conformanceCases, runConformanceCase } from "@conformance/dueline_object.js";
import { DurableObject } from "cloudflare:workers";
import { answer } from "./answer.js";
import router from "./worker.js";

/** No case runs a handler or waits. */
const HOST = {};

export class Conformance extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    return answer(request, async ({ op, args }) => (op === "cases" ? conformanceCases() : this.#run(args[0] as string)));
  }

  /** Nothing if the case holds, else what it says. */
  #run(name: string): string | null {
    let said: string | undefined;
    try {
      const isKnown = runConformanceCase(name, this.ctx.storage, HOST, () => this.#empty(), (message: string) => {
        said = message;
      });
      return isKnown ? null : "there is no such case";
    } catch (thrown) {
      __wbg_reset_state();
      return said ?? String(thrown);
    }
  }

  #empty(): void {
    const { sql } = this.ctx.storage;
    for (const { name } of sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'dueline\\_%' ESCAPE '\\'").toArray()) {
      sql.exec(`DROP TABLE ${name}`);
    }
  }
}

export default router;
