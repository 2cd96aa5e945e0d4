import { RedeliveryStopped, redeliverAll } from '../temporal/redeliver-many';
import { CliFailure, explain } from './failure';

/**
 * Sends every selected event again, as `redeliverAll` does.
 * @throws CliFailure as `redeliverEvent`, telling where to go on
 */
export async function redeliverSelected(
  ...all: Parameters<typeof redeliverAll>
): ReturnType<typeof redeliverAll> {
  try {
    return await redeliverAll(...all);
  } catch (error) {
    if (!(error instanceof RedeliveryStopped)) throw error;
    const { code, message } = explain(error.cause);
    const where = `Sent again before that: ${error.sent}. Go on with --since ${error.position}.`;
    throw new CliFailure(code, `${message} ${where}`);
  }
}
