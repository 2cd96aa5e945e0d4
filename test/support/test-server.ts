import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperationalError } from '../../src/base/errors';
import { findOnPath, isExecutable, needTool, runCommand } from '../../stack/provision/command';
import { hashFile, PLATFORM } from '../../stack/provision/download';
import type {
  CachedServer,
  ProvisionContext,
  Route,
  Server,
} from '../../stack/provision/provision';

const VERSION = '1.35.0';
const EXECUTABLE = 'temporal-test-server';
/** Hash over the lines `sha256  name` of all jars, in the order of their names. */
const JARS_SHA256 = '6bc30b8b8d174cfcb2f0710613e5e062a95bcf4ee2fd57df8b038ace1cc110fb';

/** Temporal's time-skipping server, for tests of durable timers. */
export const testServer: Server = {
  name: 'Temporal test server',
  installed: installedTestServer,
  routes: [mavenRoute()],
  help: [
    'set TEMPORAL_TEST_SERVER_PATH to a temporal-test-server executable',
    'install Java 11 or later and Maven (apt-get install default-jre-headless maven)',
  ],
};

async function installedTestServer({ env }: ProvisionContext): Promise<CachedServer | undefined> {
  const envPath = env['TEMPORAL_TEST_SERVER_PATH'];
  if (envPath !== undefined && envPath !== '') {
    if (isExecutable(envPath)) return { path: envPath, from: 'TEMPORAL_TEST_SERVER_PATH' };
    throw new OperationalError(`TEMPORAL_TEST_SERVER_PATH: ${envPath} is not an executable file`);
  }
  const path = findOnPath(EXECUTABLE, env['PATH']);
  return path === undefined ? undefined : { path, from: 'on PATH' };
}

/** Goal of a Maven plugin, pinned as the jars are. */
const COPY_JARS = 'org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies';

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>test-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>io.temporal</groupId>
      <artifactId>temporal-test-server</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;

const WRAPPER = `#!/bin/sh
exec java -cp "$(dirname "$0")/lib/*" io.temporal.testserver.TestServer "$@"
`;

function mavenRoute(): Route {
  return {
    name: `the test server ${VERSION} from Maven`,
    folder: `temporal-test-server-${VERSION}-${PLATFORM}`,
    executable: EXECUTABLE,
    megabytes: 300,
    async fetch(folder, task, { env, signal }) {
      needTool('java');
      const maven = needTool('mvn');
      writeFileSync(join(folder, 'pom.xml'), POM);
      task.say('fetching with Maven');
      const goal = ['-q', '-B', COPY_JARS, '-DincludeScope=runtime'];
      const options = { cwd: folder, env, signal, timeoutMs: 240_000 };
      await runCommand(maven, [...goal, `-DoutputDirectory=${join(folder, 'lib')}`], options);
      await checkJars(join(folder, 'lib'));
      writeFileSync(join(folder, EXECUTABLE), WRAPPER, { mode: 0o755 });
    },
  };
}

async function checkJars(folder: string): Promise<void> {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort()) {
    hash.update(`${await hashFile(join(folder, name))}  ${name}\n`);
  }
  if (hash.digest('hex') === JARS_SHA256) return;
  throw new OperationalError('the jars from Maven do not have the known SHA-256');
}
