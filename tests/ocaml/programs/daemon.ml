(* A daemon: the program and the process between them end, and it goes on. *)

let allocate n =
  let l = ref [] in
  for i = 1 to n do
    l := (i, i) :: !l
  done;
  List.length (Sys.opaque_identity !l)

let daemon ready =
  let null = Unix.openfile "/dev/null" [ Unix.O_RDWR ] 0 in
  ignore (allocate 50_000);
  Printf.printf "%d\n%!" (Unix.getpid ());
  List.iter (Unix.dup2 null) [ Unix.stdin; Unix.stdout; Unix.stderr ];
  ignore (Unix.write ready (Bytes.of_string "!") 0 1);
  Unix.sleep 60

let () =
  ignore (allocate 100_000);
  let wait, ready = Unix.pipe () in
  match Unix.fork () with
  | 0 -> (
      ignore (Unix.setsid ());
      match Unix.fork () with 0 -> daemon ready | _ -> Unix._exit 0)
  | pid ->
      ignore (Unix.waitpid [] pid);
      ignore (Unix.read wait (Bytes.create 1) 0 1)
