import { isId, REDACTED, redactText } from './text';

const SEGMENT = /^(?=.*\d)[\w-]{1,64}$/;

/** Fills `/v1/payments/:id`, but for parameters that are no ids. */
export function redactPath(route: string, params: Readonly<Record<string, string>>): string {
  return route.replaceAll(/:(\w+)/g, (_, name: string) => {
    const segment = params[name] ?? '';
    const isPlain = isId(segment) || (SEGMENT.test(segment) && redactText(segment) === segment);
    return isPlain ? segment : REDACTED;
  });
}
