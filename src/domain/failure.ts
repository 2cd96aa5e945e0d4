/** @see docs/api.md#states */
export interface Failure {
  code: string;
  message: string;
}
