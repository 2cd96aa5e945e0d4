import type { Outdated } from '../../connectors/contract/activities';
import type { Earlier } from './bank-attempts';
import { giveInstruction } from './bank-instruction';
import type { Instructed, InstructedRules, Kind } from './instructed-rules';

/** @see giveInstruction */
export function instruct<K extends Kind, R extends Instructed<K>>(
  { noun, record, isUnsent, buildInstruction }: InstructedRules<K, R>,
  resource: R,
  earlier?: Earlier,
): Promise<void> {
  const instruction = {
    ...buildInstruction(resource),
    name: noun,
    isOver: () => !isUnsent(resource.status),
    log: (line: string) => record.logActivity(resource, line),
  };
  return giveInstruction<K['answer'] | Outdated>(resource, instruction, earlier);
}
