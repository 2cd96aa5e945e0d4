/** A promise that a test opens when it wants to. */
export function gate() {
  let release = (): void => {};
  const opened = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { opened, release };
}
