"""What requests and answers hold, for the OpenAPI description. Imported by the application alone: it needs pydantic."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from egocnn.show.serve.settings import MOST_CHARACTERS, MOST_GRAPHS

MEANT, EXAMPLE = "a SMILES; after a space, the molecule's name", "CC(=O)Oc1ccccc1C(=O)O aspirin"
Line = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS, description=MEANT, examples=[EXAMPLE])]
Share = Annotated[float, Field(ge=0, le=1)]
DOUBT = "the doubt of several networks: the standard deviation of that probability over them, or of the value's error"
TARGET = "of several targets the one to explain; by default the first"
EDGES = "both ends of every edge, counted from 0, and its importance"
OUTPUT = "the log-odds of the explained class against the rest, or the predicted value"


class ExplainRequest(BaseModel):
    """Molecules to explain."""

    model_config = ConfigDict(extra="forbid", strict=True)

    smiles: Line | Annotated[list[Line], Field(min_length=1, max_length=MOST_GRAPHS)]
    explained: Annotated[str | None, Field(description="the class to explain; by default the predicted one")] = None
    target: Annotated[str | None, Field(description=TARGET)] = None
    fidelity: Annotated[bool, Field(description="whether to predict again without the structure, and it alone")] = True
    picture: Annotated[bool, Field(description="whether to draw the graph")] = True


class ClassProbability(BaseModel):
    """One class of a prediction."""

    name: str
    probability: Share


class TargetPrediction(BaseModel):
    """What is predicted of one of several targets, as of a single one."""

    name: str
    predicted: Annotated[str | float, Field(description="the likeliest class by name, or the predicted value")]
    probability: Annotated[Share | None, Field(description="of the predicted class; null for a value")]
    spread: Annotated[float | None, Field(description=DOUBT)]
    true: Annotated[str | float | None, Field(description="what the file says it is")]
    probabilities: list[ClassProbability]


class FidelityRecord(BaseModel):
    """Probability of the explained class, or the predicted value, where parts of the graph are not present."""

    removed: Annotated[float, Field(description="without the critical nodes")]
    kept: Annotated[float, Field(description="with nothing but the critical nodes")]
    evidence_lost: Annotated[float | None, Field(description="the share of output - base that goes with them")]
    evidence_kept: Annotated[float | None, Field(description="the share that they hold alone")]


class ExplainedGraph(TargetPrediction):
    """The prediction for one graph, and which part of the graph made it."""

    smiles: str | None
    target: Annotated[str | None, Field(description="of several targets the one that is explained")]
    targets: Annotated[list[TargetPrediction], Field(description="all of them; empty where the model has one")]
    explained: str | None
    technique: Annotated[str, Field(description="how the importances were found")]
    base: Annotated[float, Field(description="the output with no node present")]
    speaks_for: Annotated[float, Field(alias="for", description="the sum of the positive importances of nodes")]
    against: Annotated[float, Field(description="the sum of the negative ones; base + for + against = output")]
    output: Annotated[float, Field(description=OUTPUT)]
    balance: Annotated[str, Field(description="base, for, against and output in one line")]
    evidence: Annotated[str, Field(description="how far the structure is enough and needed; empty if not measured")]
    nothing: Annotated[str | None, Field(description="what to say where there are no critical nodes")]
    node_labels: list[str]
    node_importance: list[float]
    edge_importance: Annotated[list[tuple[int, int, float]], Field(description=EDGES)]
    critical_nodes: list[int]
    critical_edges: list[tuple[int, int]]
    fidelity: FidelityRecord | None
    unseen_labels: Annotated[list[str], Field(description="labels in the graph that no training graph has")]
    svg: Annotated[str | None, Field(description="a picture; null where it was not asked for or the graph is large")]


class SkippedLine(BaseModel):
    """A line, or a row of a file, that is no graph."""

    name: str
    error: Annotated[str, Field(description="which one it is, and why")]


class ExplainResponse(BaseModel):
    """What comes back for molecules or for a file."""

    answers: Annotated[list[ExplainedGraph | SkippedLine], Field(description="in the order of the lines or rows")]


class RequestLimits(BaseModel):
    """The most that one request may hold, and the time it may take."""

    bytes: int
    graphs: int
    nodes: int
    edges: int
    rings: Annotated[int, Field(description="that one SMILES may close")]
    seconds: float
    work_seconds: Annotated[float, Field(description="of work; what takes longer is refused")]
    files: Annotated[list[str], Field(description="how the name of a file must end")]


class TargetFacts(BaseModel):
    """One of several targets."""

    name: str
    task: Literal["classification", "regression"]
    classes: list[str]


class ModelFacts(BaseModel):
    """What the model is, reads and predicts."""

    name: str
    data: Annotated[str, Field(description="what it was trained on")]
    task: Literal["classification", "regression", "several targets"]
    classes: list[str]
    target: Annotated[str | None, Field(description="what is predicted, where it is one thing and has a name")]
    targets: Annotated[list[TargetFacts], Field(description="where there are several")]
    reads_smiles: bool
    hydrogens: Annotated[bool, Field(description="whether hydrogen atoms are nodes")]
    node_labels: list[str]
    edge_labels: list[str]
    node_attributes: int
    networks: Annotated[int, Field(description="whose mean predicts")]
    parameters: int
    limits: RequestLimits


class ErrorMessage(BaseModel):
    """Why there is no answer."""

    error: Annotated[str, Field(description="one line")]
