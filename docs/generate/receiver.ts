import { readFileSync } from 'node:fs';

/** The sample receiver as a code block: the file that merchants copy and its page are one text. */
export function receiverBlock(path: string): string {
  return `\`\`\`js\n${readFileSync(path, 'utf8').trimEnd()}\n\`\`\``;
}
