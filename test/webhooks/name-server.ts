import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A real name server on a free port of this machine. */
export interface NameServer {
  address: string;
  /** Names of the questions, each once. */
  questions: string[];
  close: () => Promise<void>;
}

const TYPE_A = 1;
/** Answer, recursion available, no error. */
const FLAGS = 0x8180;

/**
 * Answers questions for an IPv4 address; a name without one has none of either kind, and one whose
 * address is `silent` gets no answer.
 */
export async function serveNames(
  findAddress: (name: string) => string | 'silent' | undefined,
): Promise<NameServer> {
  const socket = createSocket('udp4');
  const questions: string[] = [];
  const seen = new Set<string>();
  socket.on('message', (question, { port, address }) => {
    const { name, type, end } = readQuestion(question);
    // A question that had no answer in a second is sent again, which is no new one.
    const sent = `${question.readUInt16BE(0)}:${name}:${type}`;
    if (!seen.has(sent)) questions.push(name);
    seen.add(sent);
    const known = findAddress(name);
    if (known === 'silent') return;
    const ipv4 = type === TYPE_A ? known : undefined;
    socket.send(buildAnswer(question.subarray(0, end), ipv4), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function readQuestion(question: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = question.readUInt8(at); length > 0; length = question.readUInt8(at)) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: question.readUInt16BE(at + 1), end: at + 5 };
}

function buildAnswer(question: Buffer, address: string | undefined): Buffer {
  const head = Buffer.from(question);
  head.writeUInt16BE(FLAGS, 2);
  head.writeUInt16BE(address === undefined ? 0 : 1, 6);
  // No authority and no additional records, whatever the question carried.
  head.writeUInt32BE(0, 8);
  if (address === undefined) return head;
  const row = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4]);
  return Buffer.concat([head, row, Buffer.from(address.split('.').map(Number))]);
}
