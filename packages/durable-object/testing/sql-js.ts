// What is used of `sql.js`, whose package has no types: those of whoever tests must not need others.

export interface SqlJsStatement {
  bind(values: readonly unknown[]): boolean;
  step(): boolean;
  get(): unknown[];
  getColumnNames(): string[];
  reset(): void;
  free(): boolean;
  getSQL(): string;
}

export interface SqlJsDatabase {
  prepare(sql: string): SqlJsStatement;
  iterateStatements(sql: string): {
    next(): { readonly done?: boolean; readonly value: SqlJsStatement };
    getRemainingSQL(): string;
  };
  close(): void;
}

/** What the package exports. */
export interface SqlJs {
  default(): Promise<{ readonly Database: new () => SqlJsDatabase }>;
}
