// What is used of `sql.js`.
declare module "sql.js" {
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
  export default function initSqlJs(): Promise<{ readonly Database: new () => SqlJsDatabase }>;
}
