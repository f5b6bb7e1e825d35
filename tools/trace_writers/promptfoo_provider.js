// Repeats the prompt, and fails where it is about the broken tool.
module.exports = class {
  id() {
    return "demo";
  }

  async callApi(prompt) {
    if (prompt.includes("at length") && prompt.includes("broken")) {
      return { error: "the tool is broken" };
    }
    return { output: `You said: ${prompt}`, tokenUsage: { total: 15, prompt: 10, completion: 5 } };
  }
};
