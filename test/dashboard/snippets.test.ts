import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SNIPPETS } from '../../src/dashboard/webhooks/snippets';
import { signPayload } from '../../src/webhooks/signature';

type Language = (typeof SNIPPETS)[number]['language'];

const SECRET = 'whsec_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG';
const BODY = '{"id":"evt_1","data":{"note":"naïve – ✓"}}';
const NOW = Math.floor(Date.now() / 1_000);
const GENUINE = signPayload(SECRET, BODY, NOW);

/** Deliveries as lines of header, body and secret, each with what has to be said of it. */
const CASES: readonly (readonly [header: string, body: string, secret: string, wanted: boolean])[] =
  [
    [GENUINE, BODY, SECRET, true],
    [signPayload(SECRET, BODY, NOW - 120), BODY, SECRET, true],
    [signPayload(SECRET, BODY, NOW - 900), BODY, SECRET, false],
    [signPayload(SECRET, BODY, NOW + 900), BODY, SECRET, false],
    [GENUINE, `${BODY} `, SECRET, false],
    [GENUINE, BODY, `${SECRET}x`, false],
    [GENUINE.replace(/,v1=.*/, ''), BODY, SECRET, false],
    [GENUINE.replace(/^t=\d+,/, ''), BODY, SECRET, false],
    [`${GENUINE}0`, BODY, SECRET, false],
    [GENUINE.replace(/t=\d+/, 't=x'), BODY, SECRET, false],
    ['', BODY, SECRET, false],
  ];

interface Program {
  /** Command that has to be on the machine. */
  command: string;
  file: string;
  args: readonly string[];
  /** Program around the snippet: reads lines `header TAB base64 body TAB secret`, says true or false. */
  whole: (code: string) => string;
  env?: NodeJS.ProcessEnv;
}

const PROGRAMS: Readonly<Record<Language, Program>> = {
  JavaScript: {
    command: 'node',
    file: 'verify.cjs',
    args: ['verify.cjs'],
    whole: (code) => `${code}
for (const line of require('node:fs').readFileSync(0, 'utf8').trimEnd().split('\\n')) {
  const [header, body, secret] = line.split('\\t');
  console.log(isGenuine(header, Buffer.from(body, 'base64'), secret));
}`,
  },
  Python: {
    command: 'python3',
    file: 'verify.py',
    args: ['verify.py'],
    whole: (code) => `${code}
import base64, sys
for line in sys.stdin.read().rstrip("\\n").split("\\n"):
    header, body, secret = line.split("\\t")
    print(str(is_genuine(header, base64.b64decode(body), secret)).lower())
`,
  },
  PHP: {
    command: 'php',
    file: 'verify.php',
    args: ['verify.php'],
    whole: (code) => `${code}
foreach (explode("\\n", rtrim(stream_get_contents(STDIN), "\\n")) as $line) {
    [$header, $body, $secret] = explode("\\t", $line);
    echo isGenuine($header, base64_decode($body), $secret) ? "true\\n" : "false\\n";
}`,
  },
  Go: {
    command: 'go',
    file: 'verify.go',
    args: ['run', 'verify.go'],
    env: { GOFLAGS: '-mod=mod', GO111MODULE: 'off' },
    whole: (code) =>
      `${code.replace('package webhooks', 'package main').replace('import (', 'import (\n\t"bufio"\n\t"encoding/base64"\n\t"fmt"\n\t"os"\n\t"strings"')}
func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\\t")
		body, _ := base64.StdEncoding.DecodeString(parts[1])
		fmt.Println(IsGenuine(parts[0], body, parts[2]))
	}
}`,
  },
  Java: {
    command: 'java',
    file: 'Verify.java',
    args: ['-XX:TieredStopAtLevel=1', 'Verify.java'],
    whole: (code) => {
      const main = `public class Verify {
  public static void main(String[] args) throws Exception {
    for (var line : new String(System.in.readAllBytes()).split("\\n")) {
      var parts = line.split("\\t");
      var body = java.util.Base64.getDecoder().decode(parts[1]);
      System.out.println(Webhooks.isGenuine(parts[0], body, parts[2]));
    }
  }
}
`;
      return code.replace('final class Webhooks', `${main}\nfinal class Webhooks`);
    },
  },
};

function isThere(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'snippets-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(SNIPPETS)(
  '$language: it takes what is genuine, and nothing else',
  ({ language, code }) => {
    const { command, file, args, whole, env = {} } = PROGRAMS[language];
    // A language that this machine lacks is run where it is.
    if (!isThere(command)) return;
    writeFileSync(join(folder, file), whole(code));
    const lines = CASES.map(([header, body, secret]) =>
      [header, Buffer.from(body).toString('base64'), secret].join('\t'),
    );
    // A JVM tells of these on its standard error.
    const { JAVA_TOOL_OPTIONS: _options, ...inherited } = process.env;
    const run = spawnSync(command, [...args], {
      cwd: folder,
      input: `${lines.join('\n')}\n`,
      encoding: 'utf8',
      env: { ...inherited, ...env },
    });
    expect(run.stderr).toBe('');
    expect(run.stdout.trim().split('\n')).toEqual(CASES.map(([, , , wanted]) => String(wanted)));
  },
);
