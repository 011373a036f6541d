// Requests of the tests: `{ op, args }`, answered by `{ value }` or `{ error }`.
import { DuelineError } from "@dueline/durable-object";

export interface Asked {
  readonly op: string;
  readonly args: readonly unknown[];
}

export async function answer(request: Request, op: (asked: Asked) => Promise<unknown>): Promise<Response> {
  try {
    const value = await op(await request.json());
    return Response.json({ value: value ?? null });
  } catch (thrown) {
    const error = thrown as Error;
    return Response.json({
      error: { name: error.name, message: error.message, code: thrown instanceof DuelineError ? thrown.code : null },
    });
  }
}
