// This file is imported first, since the modules after it may not even load on an older Node.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `This needs Node 20.19 or later and runs on ${process.versions.node} (${process.execPath}).\n` +
      'Install a newer Node (nodejs.org), or switch to it: nvm install 20\n',
  );
  process.exit(1);
}
