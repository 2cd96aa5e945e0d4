/** Failure of an act, told to the person who asked for it: its message is the whole explanation. */
export class ActFailure extends Error {
  override readonly name: string = 'ActFailure';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
