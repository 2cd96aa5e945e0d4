import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { XsdValidator } from 'libxml2-wasm';
import { InvalidStatement } from '../domain/banks/statement';

/** The package is an ES module that compiles as it loads, so CommonJS cannot require it. */
const load = () => import('libxml2-wasm');

const validators = new Map<string, XsdValidator>();

/**
 * Checks a message of ours by its schema before it leaves.
 * @param name with a file in src/statements/xsd
 * @throws InvalidStatement
 */
export async function checkMessage(bytes: Uint8Array, name: string): Promise<void> {
  const { XmlDocument, XmlError, XmlValidateError, XsdValidator } = await load();
  const parse = (content: Uint8Array) => XmlDocument.fromBuffer(content);
  let validator = validators.get(name);
  if (validator === undefined) {
    const schema = parse(readFileSync(join(__dirname, 'xsd', `${name}.xsd`)));
    validator = XsdValidator.fromDoc(schema);
    schema.dispose();
    validators.set(name, validator);
  }
  let document: ReturnType<typeof parse> | undefined;
  try {
    document = parse(bytes);
    validator.validate(document);
  } catch (error) {
    if (!(error instanceof XmlError)) throw error;
    const [detail] = error instanceof XmlValidateError ? error.details : [];
    // The rest of the message may quote a person's name.
    const element = /^Element '(?:\{[^}]*\})?(\w+)'/.exec(detail?.message ?? '')?.[1];
    const place =
      detail === undefined ? '' : `: see ${element ?? 'an element'} in line ${detail.line}`;
    throw new InvalidStatement('file_invalid', `The file is not valid ${name}${place}.`);
  } finally {
    document?.dispose();
  }
}
