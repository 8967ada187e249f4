#!/usr/bin/env node
// The forward pass of lm.py in ONNX Runtime, the inference engine a user would pick instead of PyTorch. Uses the protocol of
// protocol.py. Optional, like python3-torch: needs the package onnxruntime-node in NODE_PATH, and python3-torch, with which
// lm.py exports the network as ONNX.
//
//   npm install --prefix FOLDER onnxruntime-node --ignore-scripts
//   NODE_PATH=FOLDER/node_modules rondo bench forward-lm
'use strict';

const child = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const readline = require('readline');

function option(name, otherwise) {
  const at = process.argv.indexOf('--' + name);
  return at < 0 ? otherwise : process.argv[at + 1];
}

function leave(why) {
  console.log(why);
  process.exit(0);
}

function load() {
  try {
    return require('onnxruntime-node');
  } catch (error) {
    return leave('onnxruntime-node is not installed');
  }
}

// Exports the network with lm.py and our options; returns the path.
function exported(folder) {
  const file = path.join(folder, 'lm.onnx');
  const words = [path.join(__dirname, 'lm.py'), ...process.argv.slice(2), '--onnx', file];
  const made = child.spawnSync(option('python', 'python3'), words.filter((w, i) => w !== '--python' && words[i - 1] !== '--python'),
    {encoding: 'utf8'});
  if (!fs.existsSync(file)) leave((made.stdout || '').trim() || 'lm.py wrote no ONNX file');
  return file;
}

function peakBytes() {
  const line = fs.readFileSync('/proc/self/status', 'utf8').split('\n').find((l) => l.startsWith('VmHWM:'));
  return parseInt(line.split(/\s+/)[1], 10) * 1024;
}

// Seconds of wall time, or of CPU time of all threads divided by their number.
function clock(threads) {
  if (option('clock', 'wall') === 'wall') return Number(process.hrtime.bigint()) / 1e9;
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6 / threads;
}

async function main() {
  const runtime = load();
  const threads = parseInt(option('threads', '1'), 10);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rondo-onnx-'));
  let session;
  try {
    session = await runtime.InferenceSession.create(exported(folder), {
      executionProviders: ['cpu'], graphOptimizationLevel: 'all', intraOpNumThreads: threads, interOpNumThreads: 1});
  } finally {
    fs.rmSync(folder, {recursive: true});
  }
  const [rows, tokens, vocabulary] = ['rows', 'tokens', 'vocabulary'].map((name) => parseInt(option(name, '0'), 10));
  const text = BigInt64Array.from({length: rows * tokens}, (_, i) => BigInt((i * 7919) % vocabulary));
  const input = new runtime.Tensor('int64', text, [rows, tokens]);
  console.log('ready ' + JSON.stringify({threads, runtime: 'onnxruntime-node'}));
  for await (const line of readline.createInterface({input: process.stdin})) {
    const words = line.split(' ');
    if (words[0] === 'go') {
      const started = clock(threads);
      for (let i = 0; i < parseInt(words[1], 10); ++i) await session.run({tokens: input});
      console.log(clock(threads) - started);
    } else if (words[0] === 'memory') {
      console.log(peakBytes());
    }
  }
}

main();
